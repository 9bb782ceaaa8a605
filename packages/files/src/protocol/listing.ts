import { majorityOf, LeaseholdError } from "leasehold/common";
import type { FileList, FileStat } from "../types.js";
import type { Answers, ListedFile } from "./messages.js";
import { compareVersions, headerOf, stampOf, versionText } from "./records.js";
import type { NodeParts } from "./settings.js";
import { validVotes } from "./standings.js";

/** The files below a prefix, as a majority has them: as a reset would find them. */
export async function listFiles(
  parts: NodeParts,
  prefix: string,
  after: string,
  limit: number,
  signal: AbortSignal | undefined,
): Promise<FileList> {
  const answers = await askMajority(parts, { prefix, after, limit }, signal);
  // After the last path of a full page, that copy may have more.
  const ends = answers.filter(({ files }) => files.length === limit).map(({ files }) => files.at(-1)!.path);
  const end = ends.reduce<string | undefined>(
    (first, path) => (first === undefined || path < first ? path : first),
    undefined,
  );
  const byPath = new Map<string, ListedFile[]>();
  for (const { files } of answers)
    for (const file of files) {
      if (end !== undefined && file.path > end) continue;
      byPath.set(file.path, [...(byPath.get(file.path) ?? []), file]);
    }
  const files = [...byPath.keys()].sort().flatMap((path) => statOf(path, byPath.get(path)!) ?? []);
  return end === undefined ? { files } : { files, next: end };
}

function statOf(path: string, copies: readonly ListedFile[]): FileStat | undefined {
  const known = copies.filter(({ base }) => base !== null);
  const bases = known.map(({ base }) => BigInt(base!));
  const newestBase = bases.reduce((one, other) => (one > other ? one : other), 0n);
  // Copies without a header know that the file does not exist.
  const counting = known.filter(({ header }, at) => header !== null && bases[at] === newestBase);
  const headers = counting.map(({ header }) => headerOf(header!)).sort(compareVersions);
  const stamps = counting.map(({ newest }) => stampOf(newest!)).sort(compareVersions);
  const stamp = stamps.at(-1);
  if (headers.at(-1)?.exists !== true || stamp === undefined) return undefined;
  return { path, size: stamp.size, version: versionText(stamp), modifiedMs: stamp.modifiedMs };
}

async function askMajority(
  { nodes, peers, settings }: NodeParts,
  ask: { readonly prefix: string; readonly after: string; readonly limit: number },
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
