import { isDeepStrictEqual } from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import { effort } from "../../../../../test/support/effort.js";
import { seedOf } from "../../../../../test/support/seed.js";
import { CrashingDisk, diskRoot } from "../../../../../test/support/crashing-disk.js";
import { SimRandom } from "@leasehold/sim/inner/kit/random.js";
import type { Entry, HardState, SnapshotMeta } from "../../raft/types.js";
import { snapshotPieces } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { configOf } from "../config/config.js";
import { type DataDirectory, openContent } from "./data-directory.js";
import { Disk } from "./disk.js";
import { DiskIndex } from "./disk-index.js";

/**
 * Runs the production code of a server's disk on a simulated disk. Processes are killed and power is lost
 * between any two operations; any sectors of a write may land; the disk is full or fails now and then.
 * Everything acknowledged to a process, and everything a process found when it started, is there after every
 * power loss, and every start succeeds. With any bit flipped, the server finds the same content, or refuses
 * to start.
 */

const simulated = vi.hoisted(() => ({ disk: undefined as CrashingDisk | undefined }));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<Record<string, (path: string, ...rest: unknown[]) => unknown>>();
  const names = ["mkdir", "chmod", "readdir", "readFile", "open", "rename", "unlink", "rm"] as const;
  const replaced = names.map((name) => [
    name,
    (path: string, ...rest: unknown[]) => {
      const promises = simulated.disk?.promises as unknown as typeof real | undefined;
      const isOurs = promises !== undefined && String(path).startsWith("/crashing-disk");
      return (isOurs ? promises : real)[name]!(path, ...rest);
    },
  ]);
  return { ...real, ...Object.fromEntries(replaced) };
});
vi.mock("node:fs", async (original) => ({
  ...(await original<object>()),
  createReadStream: (path: string, options: { highWaterMark: number }) => simulated.disk!.read(path, options),
}));

const folder = `${diskRoot}/data`;
const config = configOf({ name: "a", dataDir: folder });
const membership = { voters: [1n], learners: [] };
const turn = () => new Promise((resolve) => setImmediate(resolve));

interface Log {
  readonly hardState: HardState;
  readonly base: number;
  /** Terms of the entries from `base + 1` on. */
  readonly terms: readonly number[];
}

/** The log after a write. */
interface Step {
  readonly log: Log;
  readonly write: number;
}

/** A sequence of processes on one disk. */
class Life {
  readonly disk: CrashingDisk;
  readonly #random: SimRandom;
  /** The log that the last process found, followed by the log after each write since. */
  #steps: Step[] = [];
  #acknowledged = 0;
  #writes = 0;
  #found: Awaited<ReturnType<typeof openContent>> | undefined;
  #writer: Disk | undefined;
  #index: DiskIndex | undefined;
  #disks = new Map<bigint, bigint>();
  #isBroken = false;
  #isSaving = false;
  #wrong = "";
  readonly counts = { starts: 0, writes: 0, installs: 0, snapshots: 0, failures: 0, torn: 0, flips: 0 };

  constructor(seed: number) {
    this.#random = new SimRandom(seed);
    this.disk = new CrashingDisk(() => this.#random.next());
    simulated.disk = this.disk;
  }

  async run(steps: number): Promise<void> {
    await this.#start();
    for (let step = 0; step < steps; step += 1) {
      const dice = this.#random.next();
      if (this.#isBroken || dice < 0.12) await this.#crash();
      else if (dice < 0.5) this.#append();
      else if (dice < 0.6) this.#install();
      else if (dice < 0.75) this.#save();
      else if (dice < 0.9) this.#meet();
      else if (dice < 0.95) this.disk.fullChance = this.disk.fullChance === 0 ? 0.2 : 0;
      else this.disk.lostChance = this.disk.lostChance === 0 ? 0.2 : 0;
      if (this.#wrong !== "") throw new Error(this.#wrong);
      for (let turns = this.#random.next() * 6; turns > 0; turns -= 1) await turn();
    }
    await this.#crash();
  }

  get #last(): Log {
    return this.#steps.at(-1)!.log;
  }

  /** A process starts. If it finds nothing wrong, everything it found counts as acknowledged. */
  async #start(): Promise<void> {
    this.disk.fullChance = 0;
    this.disk.lostChance = 0;
    this.counts.starts += 1;
    await this.disk.promises.mkdir(folder);
    const flipped = this.#random.next() < 0.3 ? await this.#startWithFlippedBit() : undefined;
    const found = await this.#open();
    const log = logOf(found);
    if (flipped !== undefined && !isDeepStrictEqual(flipped, { record: found.record, log }))
      throw new Error("a bit that turned over has changed what is found");
    if (found.tornBytes > 0) this.counts.torn += 1;
    if (this.#found !== undefined) this.#judge(found.record, log);
    this.#found = found;
    this.#writer = new Disk(found.journal, found.snapshots, log.base);
    this.#index = new DiskIndex(folder, found.record);
    this.#disks = new Map(found.record.disks);
    this.#steps = [{ log, write: 0 }];
    this.#acknowledged = 0;
    this.#writes = 0;
    this.#isBroken = false;
    this.#isSaving = false;
  }

  #open(): ReturnType<typeof openContent> {
    return openContent(folder, config, { segmentBytes: 6_000 });
  }

  /** Returns the content found with a flipped bit; undefined if the server refuses to start with it. */
  async #startWithFlippedBit(): Promise<{ record: DataDirectory["record"]; log: Log } | undefined> {
    const files = this.disk.files();
    const path = files[Math.floor(this.#random.next() * files.length)];
    const used = path === undefined ? -1 : this.disk.bytesOf(path).findLastIndex((byte) => byte !== 0);
    if (path === undefined || used === -1) return undefined;
    this.counts.flips += 1;
    const offset = Math.floor(this.#random.next() * (used + 1));
    const copy = this.disk.withFlippedBit(path, offset, Math.floor(this.#random.next() * 8));
    simulated.disk = copy;
    try {
      const found = await this.#open();
      return { record: found.record, log: logOf(found) };
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "LOG_CORRUPT" || code === "VERSION_MISMATCH") return undefined;
      throw new Error(`byte ${offset} of ${path}: ${String(error)}`, { cause: error });
    } finally {
      simulated.disk = this.disk;
    }
  }

  #judge(record: DataDirectory["record"], log: Log): void {
    if (record.disk !== this.#found!.record.disk) throw new Error("all of the directory is gone");
    for (const [member, disk] of this.#disks)
      if (record.disks.get(member) !== disk) throw new Error(`the disk of ${member} is forgotten`);
    const possible = this.#steps.slice(this.#steps.findLastIndex(({ write }) => write <= this.#acknowledged));
    if (!possible.some((step) => isSameLog(step.log, log)))
      throw new Error(`${text(log)}, not one of ${possible.map((step) => text(step.log)).join("; ")}`);
  }

  async #crash(): Promise<void> {
    do {
      // Often in the middle of a write.
      if (!this.#isBroken && this.#random.next() < 0.7) this.#append();
      for (let turns = this.#random.next() * 16; turns > 0; turns -= 1) await turn();
      if (this.#random.next() < 0.5) this.disk.killProcess();
      else this.disk.losePower();
      await this.#start();
    } while (this.#random.next() < 0.3);
  }

  #write(hardState: HardState, installed: SnapshotMeta | undefined, entries: readonly Entry[]): void {
    const write = ++this.#writes;
    this.counts.writes += 1;
    let { base, terms } = this.#last;
    if (installed !== undefined) [base, terms] = [installed.index, []];
    for (const { index, term } of entries) terms = [...terms.slice(0, index - 1 - base), term];
    this.#steps.push({ log: { hardState, base, terms }, write });
    const received =
      installed === undefined ? undefined : { meta: installed, pieces: [...snapshotPieces(new CoreState())] };
    this.#writer!.persist({ sequence: write, hardState, snapshot: installed, entries }, received).then(
      () => (this.#acknowledged = write),
      () => this.#fail(),
    );
  }

  /** The server stops. Its pending writes may still succeed or fail. */
  #fail(): void {
    this.counts.failures += 1;
    this.#isBroken = true;
  }

  #append(): void {
    const { base, terms, hardState } = this.#last;
    const kept = Math.max(hardState.commit - base, terms.length - Math.floor(this.#random.next() * 3), 0);
    const term = hardState.term + (kept < terms.length ? 1 : 0);
    const length = 1 + Math.floor(this.#random.next() * 3);
    const entries = Array.from({ length }, (_, at) =>
      entryOf(base + Math.min(kept, terms.length) + 1 + at, term),
    );
    const commit = Math.max(hardState.commit, base + Math.floor(Math.min(kept, terms.length) / 2));
    this.#write({ term, votedFor: 1n, commit }, undefined, entries);
  }

  #install(): void {
    const { base, terms, hardState } = this.#last;
    this.counts.installs += 1;
    const index = base + terms.length + 1 + Math.floor(this.#random.next() * 5);
    const entries = this.#random.next() < 0.5 ? [] : [entryOf(index + 1, hardState.term)];
    const meta = { index, term: hardState.term, membership };
    this.#write({ ...hardState, commit: index }, meta, entries);
  }

  /**
   * Saves a snapshot of the server's own state, concurrently with other writes. It may fail, and the server
   * continues.
   */
  #save(): void {
    const { base, terms, hardState } = this.#last;
    const { commit } = hardState;
    if (this.#isSaving || commit <= base) return;
    this.#isSaving = true;
    this.counts.snapshots += 1;
    const meta = { index: commit, term: terms[commit - base - 1]!, membership };
    const pieces = [...snapshotPieces(new CoreState())];
    this.#writer!.saveSnapshot({ meta, pieces }).then(
      () => (this.#isSaving = false),
      () => (this.#isSaving = false),
    );
  }

  /** Another server is met, which may have lost its disk. */
  #meet(): void {
    const member = BigInt(1 + Math.floor(this.#random.next() * 8));
    const disk = BigInt(1 + Math.floor(this.#random.next() * 1.2));
    const process = this.counts.starts;
    const { failures } = this.disk;
    this.#index!.learn(member, disk).then(
      (isKnown) => {
        if (!isKnown || process !== this.counts.starts) return;
        if ((this.#disks.get(member) ?? disk) !== disk) this.#wrong = `two disks of ${member} are known`;
        this.#disks.set(member, disk);
      },
      () => {
        if (this.disk.failures === failures) this.#wrong = "a write that failed before locks others out";
      },
    );
  }
}

/** @throws Error if an entry differs from what was written */
function logOf({ recovered }: Awaited<ReturnType<typeof openContent>>): Log {
  const { hardState, snapshot, entries } = recovered;
  for (const entry of entries)
    if (!isDeepStrictEqual(entry, entryOf(entry.index, entry.term)))
      throw new Error(`entry ${entry.index} is not what was written`);
  return { hardState, base: snapshot.index, terms: entries.map(({ term }) => term) };
}

/** Compares beyond the snapshots that either of them has. */
function isSameLog(a: Log, b: Log): boolean {
  const base = Math.max(a.base, b.base);
  const rest = (log: Log) => log.terms.slice(base - log.base).join();
  const { term, votedFor, commit } = a.hardState;
  const same =
    term === b.hardState.term && votedFor === b.hardState.votedFor && commit === b.hardState.commit;
  return same && b.base + b.terms.length >= a.base && rest(a) === rest(b);
}

function text({ hardState, base, terms }: Log): string {
  return `term ${hardState.term} commit ${hardState.commit} base ${base} terms ${terms.join()}`;
}

/** Many entries have whole sectors of zeros. */
function entryOf(index: number, term: number): Entry {
  const data = new Uint8Array((index * 37) % (index % 4 === 0 ? 3_000 : 200));
  return { kind: "normal", index, term, data: data.fill(index % 3 === 0 ? index : 0) };
}

afterEach(() => {
  simulated.disk = undefined;
});

test("acknowledged writes survive kills, power failures and a full disk, and every start succeeds", async () => {
  const total = { starts: 0, writes: 0, installs: 0, snapshots: 0, failures: 0, torn: 0, flips: 0 };
  const first = seedOf();
  const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 50 * effort);
  for (let seed = first; seed < first + seeds; seed += 1) {
    const life = new Life(seed);
    try {
      await life.run(60);
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
    for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += life.counts[key];
  }
  for (const count of Object.values(total)) expect(count).toBeGreaterThan(0);
});
