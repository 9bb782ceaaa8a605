import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { startLocalCluster } from "../support/local-cluster.js";

/** Readers, writers and users of a pool as separate processes, which are killed and stopped. */

const script = fileURLToPath(new URL("form-holder.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "leasehold-forms-"));
const journal = join(folder, "journal");
/** The run ends when enough has happened, which takes longer on a busy machine. */
const [runMsMin, runMsMax] = [12_000, 90_000];
const processes = 6;
const limitMax = 3;
const children: ChildProcess[] = [];

afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

interface Hold {
  readonly kind: string;
  readonly resource: string;
  readonly token: bigint;
  readonly from: bigint;
  readonly until: bigint;
}

/** The last line of each hold has its latest time. */
function holdsIn(text: string): Hold[] {
  const holds = new Map<string, Hold>();
  for (const line of text.trim().split("\n")) {
    const [pid, number, kind, resource, token, from, until] = line.split(" ");
    const times = { token: BigInt(token!), from: BigInt(from!), until: BigInt(until!) };
    holds.set(`${pid} ${number}`, { kind: kind!, resource: resource!, ...times });
  }
  return [...holds.values()].sort((one, other) => (one.from < other.from ? -1 : 1));
}

/** The violations in a list of holds, which is ordered by the holds' beginnings. */
function violations(holds: readonly Hold[]): string[] {
  const found: string[] = [];
  for (const [index, later] of holds.entries()) {
    if (later.kind === "pool" && Number(/~(\d+)$/.exec(later.resource)?.[1] ?? 0) >= limitMax)
      found.push(`${later.resource} is beyond the greatest limit`);
    for (const earlier of holds.slice(0, index)) {
      if (earlier.resource !== later.resource) continue;
      if (earlier.kind === "reader" && later.kind === "reader") continue;
      const what = `${earlier.kind} ${earlier.token} and ${later.kind} ${later.token} of ${later.resource}`;
      if (earlier.until >= later.from) found.push(`${what} held at one time`);
      if (earlier.token >= later.token) found.push(`${what}: tokens do not rise`);
    }
  }
  return found;
}

function overlapsOfReaders(holds: readonly Hold[]): number {
  const readers = holds.filter(({ kind }) => kind === "reader");
  return readers.filter((one, index) => index > 0 && readers[index - 1]!.until > one.from).length;
}

/** The events that haven't happened often enough for the run to prove anything. */
function shortOf(holds: readonly Hold[]): string[] {
  const count = (what: string) => holds.filter(({ kind }) => kind === what).length;
  const counts = [
    ["readers", count("reader"), 30],
    ["writers", count("writer"), 10],
    ["users of the pool", count("pool"), 20],
    ["overlaps of readers", overlapsOfReaders(holds), 5],
  ] as const;
  return counts.filter(([, found, least]) => found <= least).map(([what, found]) => `${found} ${what}`);
}

test("readers hold together and a writer alone, and a pool has no more users than its limit, whichever processes are killed or stopped", async () => {
  const cluster = await startLocalCluster();
  const start = () => {
    const child = spawn(process.execPath, [script, journal, ...cluster.urls], { stdio: "inherit" });
    children.push(child);
    return child;
  };
  const running = Array.from({ length: processes }, start);
  const startMs = performance.now();
  const isEnough = (): boolean => {
    const holds = existsSync(journal) ? holdsIn(readFileSync(journal, "utf8")) : [];
    return shortOf(holds).length === 0;
  };
  let killed = 0;
  for (let turn = 0; ; turn += 1) {
    const ranMs = performance.now() - startMs;
    if (ranMs > runMsMax || (ranMs > runMsMin && isEnough())) break;
    await sleep(800);
    const which = turn % processes;
    const child = running[which]!;
    expect(child.exitCode).toBeNull();
    if (turn % 2 === 0) {
      child.kill("SIGKILL");
      running[which] = start();
      killed += 1;
    } else {
      child.kill("SIGSTOP");
      void sleep(1_500).then(() => child.kill("SIGCONT"));
    }
  }
  for (const child of children) child.kill("SIGKILL");
  await cluster.close();
  const holds = holdsIn(readFileSync(journal, "utf8"));
  expect(violations(holds)).toEqual([]);
  expect(killed).toBeGreaterThan(3);
  expect(shortOf(holds)).toEqual([]);
});

test("a reader with a writer, one slot twice, a falling token and a slot beyond the limit are seen", () => {
  const judged = (...lines: string[]) => violations(holdsIn(lines.join("\n"))).join();
  expect(judged("1 0 reader book 1 10 20", "2 0 reader book 2 15 30", "3 0 writer book 3 40 50")).toBe("");
  expect(judged("1 0 reader book 1 10 20", "2 0 writer book 2 15 30")).toContain("held at one time");
  expect(judged("1 0 writer book 1 10 20", "2 0 reader book 2 15 30")).toContain("held at one time");
  expect(judged("1 0 pool pool/~1 1 10 20", "2 0 pool pool/~1 2 15 30")).toContain("held at one time");
  expect(judged("1 0 pool pool/~1 1 10 20", "2 0 pool pool 1 15 30")).toBe("");
  expect(judged("1 0 reader book 5 10 20", "2 0 writer book 4 30 40")).toContain("tokens do not rise");
  expect(judged("1 0 pool pool/~3 1 10 20")).toContain("beyond");
});
