import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { dist, eventually } from "../support/built.js";

/** Leases on three directories between separate processes: the grid, and Δ-leases for comparison. */

const holderPath = fileURLToPath(new URL("grid-holder.mjs", import.meta.url));
const ttlMaxMs = 2_000;

interface Said {
  readonly what: string;
  readonly atMs: number;
  readonly token?: string;
  readonly remainingMs?: number;
}

class Holder {
  readonly child: ChildProcess;
  readonly said: Said[] = [];
  #rest = "";

  constructor(ground: string, name: string, folders: readonly string[]) {
    const words = [holderPath, dist, ground, name, String(ttlMaxMs), ...folders];
    this.child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
    this.child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop()!;
      for (const line of lines) this.said.push(JSON.parse(line) as Said);
    });
  }

  /** Lets the process go on: first to acquire the resource, then to release it. */
  next(): void {
    this.child.stdin!.write("\n");
  }

  heard(what: string): Promise<Said> {
    return eventually(`${what} of a holder`, () => this.said.find((one) => one.what === what), 15_000);
  }
}

const started: Holder[] = [];
let root: string | undefined;

afterEach(() => {
  for (const { child } of started.splice(0)) child.kill("SIGKILL");
  if (root !== undefined) rmSync(root, { recursive: true, force: true });
});

async function start(ground: string, names: readonly string[]): Promise<Holder[]> {
  root = mkdtempSync(join(tmpdir(), "leasehold-grid-"));
  const folders = ["a", "b", "c"].map((name) => join(root!, name));
  for (const folder of folders) mkdirSync(folder);
  const holders: Holder[] = [];
  for (const name of names) {
    const holder = new Holder(ground, name, folders);
    started.push(holder);
    holders.push(holder);
    await holder.heard("opened");
  }
  return holders;
}

test.each(["grid", "delta"])("on %s another takes over from a holder that is killed", async (ground) => {
  const [first, second] = (await start(ground, ["first", "second"])) as [Holder, Holder];
  first.next();
  const took = await first.heard("took");
  second.next();
  await second.heard("wants");
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect(second.said.map(({ what }) => what)).toEqual(["opened", "wants"]);
  const killedMs = Number(process.hrtime.bigint() / 1_000_000n);
  first.child.kill("SIGKILL");
  const next = await second.heard("took");
  expect(BigInt(next.token!)).toBeGreaterThan(BigInt(took.token!));
  // The rest of the lease, ε or the stretching of Δ, one polling interval and one round.
  expect(next.atMs - killedMs).toBeLessThan(ttlMaxMs + 1_000);
  second.next();
  await second.heard("released");
});

test("a holder that is stopped past its lease finds it lost, after another has got it", async () => {
  const [first, second] = (await start("grid", ["first", "second"])) as [Holder, Holder];
  first.next();
  await first.heard("took");
  second.next();
  await second.heard("wants");
  first.child.kill("SIGSTOP");
  const next = await second.heard("took");
  first.child.kill("SIGCONT");
  const lost = await first.heard("lost");
  expect(lost.atMs).toBeGreaterThan(next.atMs);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(second.said.some(({ what }) => what === "lost")).toBe(false);
});
