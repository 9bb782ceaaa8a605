import { majorityOf, LeaseholdError } from "leasehold/common";
import type { FileStat } from "../types.js";
import type { Answers, ListedFile } from "./messages.js";
import { compareVersions, headerOf, stampOf, versionText } from "./records.js";
import type { NodeParts } from "./settings.js";
import { validVotes } from "./standings.js";

/**
 * The states of files as known to a majority, which is how a reset would find them. Files that do not exist
 * are left out.
 */
export async function statsOf(
  parts: NodeParts,
  paths: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Map<string, FileStat>> {
  const stats = new Map<string, FileStat>();
  if (paths.length === 0) return stats;
  const answers = await askMajority(parts, { paths }, signal);
  for (const [at, path] of paths.entries()) {
    const copies = answers.flatMap(({ files }) => files[at] ?? []);
    const stat = statOf(path, copies);
    if (stat !== undefined) stats.set(path, stat);
  }
  return stats;
}

function statOf(path: string, copies: readonly ListedFile[]): FileStat | undefined {
  const known = copies.filter(({ base }) => base !== null);
  const bases = known.map(({ base }) => BigInt(base!));
  const newestBase = bases.reduce((one, other) => (one > other ? one : other), 0n);
  // A copy without a header knows only that the file does not exist.
  const counting = known.filter(({ header }, at) => header !== null && bases[at] === newestBase);
  const headers = counting.map(({ header }) => headerOf(header!)).sort(compareVersions);
  const stamps = counting.map(({ newest }) => stampOf(newest!)).sort(compareVersions);
  const stamp = stamps.at(-1);
  if (headers.at(-1)?.exists !== true || stamp === undefined) return undefined;
  return { path, size: stamp.size, version: versionText(stamp), modifiedMs: stamp.modifiedMs };
}

async function askMajority(
  { nodes, peers, settings }: NodeParts,
  ask: { readonly paths: readonly string[] },
  signal: AbortSignal | undefined,
): Promise<Answers["list"][]> {
  const { operationTimeoutMs: timeoutMs } = settings;
  const answers: Answers["list"][] = [];
  const enough = (): boolean => validVotes(answers).length >= majorityOf(nodes.length);
  return new Promise((resolve, reject) => {
    const asked = nodes.map(async (node) => {
      answers.push((await peers.ask(node, "list", ask, { timeoutMs, signal })).answer);
      if (enough()) resolve(validVotes(answers));
    });
    void Promise.allSettled(asked).then((settled) => {
      const cause = settled.find(({ status }) => status === "rejected") as PromiseRejectedResult | undefined;
      reject(
        new LeaseholdError("NO_QUORUM", "no majority of nodes has listed its files", {
          cause: cause?.reason,
        }),
      );
    });
  });
}
