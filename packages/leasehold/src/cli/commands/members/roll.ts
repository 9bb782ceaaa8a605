import { spawn } from "node:child_process";
import { once } from "node:events";
import { clusterStatus } from "../../../index.js";
import type { MemberReport } from "../../../flease/tcp/types.js";
import { few } from "../../../common/lists.js";
import { parseDuration } from "../../../lease/duration.js";
import { CommandFailure, usageError } from "../../common/failure.js";
import { exitCode } from "../../common/exit-codes.js";
import { type SharedOptions, openOptions, settingsOf } from "../../common/settings.js";
import { printLine, printProgress } from "../../output/print.js";
import { stateOf } from "../status.js";

export interface RollOptions extends SharedOptions {
  readonly with: string;
  readonly from?: string;
  readonly within: string;
}

/** The pause between two queries of the members, ms. */
const lookEveryMs = 250;

/**
 * `leasehold member roll`: restarts one member after another. The next member follows only when the previous
 * one is a new process and all members are ready: with at most one member down there is always a majority.
 */
export async function roll(options: RollOptions): Promise<number> {
  const settings = settingsOf(options);
  const withinMs = parseDuration(options.within, "within");
  const ask = () => clusterStatus(...few(settings.endpoints), openOptions(settings));
  const first = await ask();
  const ids = first.map(({ id }) => id).sort();
  const { from = ids[0]! } = options;
  if (!ids.includes(from)) throw usageError(`--from ${from}: the members are ${ids.join(", ")}`);
  const turn = ids.slice(ids.indexOf(from));
  for (const [index, id] of turn.entries()) {
    const goOn = `to go on: leasehold member roll --from ${id}`;
    const before = await ask();
    assertAllReady(before, goOn);
    const member = before.find((each) => each.id === id);
    if (member === undefined) continue; // The member has been removed meanwhile.
    const place = `${id} (${index + 1} of ${turn.length})`;
    printProgress(`${place}: restarting`);
    const code = await run(commandFor(options.with, member));
    if (code !== 0)
      throw new CommandFailure("unavailable", `the command for ${id} failed with ${code}; ${goOn}`);
    await untilBack(member, ask, place, withinMs, goOn);
    printProgress("");
    if (settings.output === "table") printLine(`${place}: restarted and ready`);
  }
  if (settings.output !== "table") printLine(JSON.stringify({ restarted: turn }));
  return exitCode("ok");
}

function assertAllReady(reports: readonly MemberReport[], goOn: string): void {
  const missing = reports.filter((each) => !isReady(each));
  if (missing.length === 0) return;
  const why = missing.map((each) => `${each.id} is ${stateOf(each).text}`).join("; ");
  throw new CommandFailure("unavailable", `no member is restarted: ${why}; ${goOn}`);
}

function isReady(report: MemberReport): boolean {
  return report.reachable && report.status.state === "ready";
}

/** Replaces placeholders in braces. Accepts only values that a shell reads as one plain word. */
export function commandFor(template: string, { id, address }: Pick<MemberReport, "id" | "address">): string {
  const colon = address.lastIndexOf(":");
  const words = { id, address, host: address.slice(0, colon), port: address.slice(colon + 1) };
  if (!/^[\w.:[\]-]+$/.test(`${id}${address}`))
    throw usageError(`${address} of ${id} is no address that may stand in a command`);
  return template.replaceAll(/\{(id|address|host|port)\}/g, (_, word: keyof typeof words) => words[word]);
}

/**
 * The command's output goes to standard error. The command counts as ended when its shell exits, even if that
 * left processes running.
 */
async function run(command: string): Promise<number | string> {
  const child = spawn("/bin/sh", ["-c", command], { stdio: ["ignore", 2, 2] });
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  return code ?? signal ?? "no exit code";
}

async function untilBack(
  { id, ...old }: MemberReport,
  ask: () => Promise<MemberReport[]>,
  place: string,
  withinMs: number,
  goOn: string,
): Promise<void> {
  const incarnation = old.reachable ? old.status.incarnation : "";
  const endMs = performance.now() + withinMs;
  for (;;) {
    const reports = await ask().catch((): MemberReport[] => []);
    const now = reports.find((each) => each.id === id);
    const isAnother = now?.reachable === true && now.status.incarnation !== incarnation;
    if (isAnother && reports.every(isReady)) return;
    const state = now === undefined ? "no answer" : isAnother ? stateOf(now).text : "not restarted yet";
    printProgress(`${place}: ${state}`);
    if (performance.now() > endMs)
      throw new CommandFailure("unavailable", `${id} did not come back in time: ${state}; ${goOn}`);
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}
