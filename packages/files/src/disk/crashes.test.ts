import assert from "node:assert/strict";
import { describe, expect, test } from "vitest";
import { CrashDisk, PowerLoss } from "../../../../test/support/crash-disk.js";
import { effort } from "../../../../test/support/effort.js";
import { Xorshift } from "leasehold/common";
import { DirectoryStore } from "./directory-store.js";

const paths = ["a", "a/b", "Ä", "reports/2026"];
const blocks = 5;

/** The states that a block may have after a crash: the last synced one, and each written since. */
interface Expected {
  safe: string | undefined;
  since: { readonly at: number; readonly tag: string | undefined }[];
}

/** A node's random life: it writes, syncs, crashes and restarts. The model tracks the possible states. */
class Life {
  readonly #random: Xorshift;
  readonly #disk: CrashDisk;
  readonly #expected = new Map<string, Expected>();
  readonly #meta = new Map<string, Set<string>>();
  /** Files whose removal has failed: whether they exist is known only after a crash. */
  readonly #maybeGone = new Set<string>();
  #store!: DirectoryStore;
  #writes = 0;
  crashes = 0;
  refusals = 0;
  removals = 0;
  creations = 0;

  constructor(seed: number) {
    this.#random = new Xorshift(seed * 2_654_435_761);
    this.#disk = new CrashDisk(() => this.#random.next());
  }

  async run(steps: number): Promise<void> {
    await this.#start();
    for (let step = 0; step < steps; step += 1) {
      this.#makeTrouble();
      const several = Array.from({ length: 1 + this.#below(6) }, () => this.#act());
      await Promise.all(several);
      if (this.#disk.callsLeft <= 0 || this.#chance(0.03)) await this.#crash();
      this.#disk.failing = () => undefined;
      this.#disk.room = Infinity;
      this.#disk.callsLeft = Infinity;
      await this.#check();
    }
  }

  #makeTrouble(): void {
    if (this.#chance(0.1)) this.#disk.callsLeft = 1 + this.#below(20);
    if (this.#chance(0.05)) this.#disk.room = this.#below(200_000);
    if (this.#chance(0.03)) {
      const at = this.#below(10);
      let calls = 0;
      const broken = ["write", "sync", "truncate", "syncFolder", "rename"][this.#below(5)]!;
      this.#disk.failing = (call) =>
        call === broken && (calls += 1) > at ? Object.assign(new Error("EIO"), { code: "EIO" }) : undefined;
    }
  }

  /** Calls that may run concurrently: one for each block. */
  readonly #busy = new Set<string>();

  async #act(): Promise<void> {
    const path = paths[this.#below(paths.length)]!;
    const index = this.#below(blocks);
    const what = this.#random.next();
    if (what > 0.97) return this.#removeFile(path);
    const key = what < 0.2 ? `${path} meta` : `${path} ${index}`;
    if (this.#busy.has(key) || (what >= 0.2 && !this.#meta.has(path))) return;
    this.#busy.add(key);
    try {
      if (what < 0.2) await (this.#chance(0.5) ? this.#create(path) : this.#writeMeta(path));
      else if (what < 0.65) await this.#write(path, index);
      else if (what < 0.75) await this.#remove(path, index);
      else await this.#sync(path);
    } finally {
      this.#busy.delete(key);
    }
  }

  async #writeMeta(path: string): Promise<void> {
    const meta = `meta ${(this.#writes += 1)}`;
    const before = this.#meta.get(path);
    try {
      await this.#store.writeMeta(path, meta);
      this.#meta.set(path, new Set([meta]));
    } catch (error) {
      this.#refused(error);
      if (!isFull(error)) this.#meta.set(path, new Set([...(before ?? ["none"]), meta]));
    }
  }

  /** A file whose creation a crash may undo until it is synced. */
  async #create(path: string): Promise<void> {
    if (this.#meta.has(path)) return;
    await this.#store.create(path, "new").catch((error) => this.#refused(error));
    this.creations += 1;
    this.#meta.set(path, new Set(["none", "new"]));
  }

  async #write(path: string, index: number): Promise<void> {
    const tag = `t.${(this.#writes += 1)}`;
    const expected = this.#at(path, index);
    const bytes = contentOf(tag, [0, 1, 1_025, 4_097, 66_000, 68_000, 70_000][this.#below(7)]!);
    const change = { at: this.#writes, tag };
    expected.since.push(change);
    try {
      await this.#store.writeBlock(path, index, tag, bytes);
    } catch (error) {
      this.#refused(error);
      if (isFull(error) || !isDown(error)) expected.since = expected.since.filter((each) => each !== change);
    }
  }

  async #remove(path: string, index: number): Promise<void> {
    const expected = this.#at(path, index);
    expected.since.push({ at: (this.#writes += 1), tag: undefined });
    await this.#store.removeBlock(path, index).catch((error) => this.#refused(error));
  }

  /** Nothing else happens to the file meanwhile. */
  async #removeFile(path: string): Promise<void> {
    const keys = [`${path} meta`, ...Array.from({ length: blocks }, (_, index) => `${path} ${index}`)];
    if (keys.some((key) => this.#busy.has(key))) return;
    for (const key of keys) this.#busy.add(key);
    try {
      await this.#store.removeFile(path);
      this.removals += 1;
      this.#meta.delete(path);
      for (const key of keys) this.#expected.delete(key);
    } catch (error) {
      this.#refused(error);
      if (!isFull(error)) this.#maybeGone.add(path);
    } finally {
      for (const key of keys) this.#busy.delete(key);
    }
  }

  async #sync(path: string): Promise<void> {
    const begun = this.#writes;
    // A write in flight may take effect after the sync.
    const busy = new Set(this.#busy);
    try {
      await this.#store.sync(path);
    } catch (error) {
      this.#refused(error);
      return;
    }
    const meta = this.#meta.get(path);
    if (meta?.has("new") === true) meta.delete("none");
    for (const [key, expected] of this.#expected) {
      if (busy.has(key) || !key.startsWith(`${path} `)) continue;
      const synced = expected.since.filter(({ at }) => at <= begun);
      if (synced.length > 0) expected.safe = synced.at(-1)!.tag;
      expected.since = expected.since.filter(({ at }) => at > begun);
    }
  }

  async #crash(): Promise<void> {
    this.crashes += 1;
    if (this.#chance(0.5)) this.#disk.kill();
    else {
      this.#disk.callsLeft = 0;
      await this.#store.sync("a").catch(() => undefined);
      this.#disk.restart();
    }
    this.#disk.failing = () => undefined;
    this.#disk.room = Infinity;
    await this.#start();
    await this.#settle();
  }

  async #start(): Promise<void> {
    // The node may crash while it starts, repeatedly.
    for (;;) {
      if (this.#chance(0.3)) this.#disk.callsLeft = 1 + this.#below(12);
      try {
        this.#store = await DirectoryStore.open({
          disk: this.#disk,
          reserveBytes: 0,
          rewriteBytesMin: 2_000,
        });
        this.#disk.callsLeft = Infinity;
        return;
      } catch (error) {
        if (!isDown(error)) throw error;
        this.#disk.restart();
      }
    }
  }

  /** After a crash each block has one of its possible states, and keeps that state. */
  async #settle(): Promise<void> {
    for (const path of this.#meta.keys()) {
      const found = (await this.#store.readMeta(path)) ?? "none";
      const may = [...this.#meta.get(path)!, ...(this.#maybeGone.has(path) ? ["none"] : [])];
      assert(may.includes(found), `${path} has the metadata ${found}`);
      if (found === "none") this.#forget(path);
      else this.#meta.set(path, new Set([found]));
    }
    for (const [key, expected] of this.#expected) {
      const [path, index] = key.split(" ") as [string, string];
      const tag = await this.#tagAt(path, Number(index));
      const gone = this.#maybeGone.has(path) ? [undefined] : [];
      const may = [expected.safe, ...expected.since.map((each) => each.tag), ...gone];
      assert(may.includes(tag), `${key} is ${tag}, and may be ${may.join()}`);
      expected.safe = tag;
      expected.since = [];
    }
    this.#maybeGone.clear();
  }

  #forget(path: string): void {
    this.#meta.delete(path);
    for (const key of this.#expected.keys()) if (key.startsWith(`${path} `)) this.#expected.delete(key);
  }

  async #check(): Promise<void> {
    for (const [key, { safe, since }] of this.#expected) {
      const [path, index] = key.split(" ") as [string, string];
      assert.equal(await this.#tagAt(path, Number(index)), since.length > 0 ? since.at(-1)!.tag : safe, key);
    }
  }

  /** The tag of the block, whose content must be intact. */
  async #tagAt(path: string, index: number): Promise<string | undefined> {
    const block = await this.#store.readBlock(path, index);
    if (block !== undefined)
      assert(contentOf(block.tag, block.bytes.length).equals(block.bytes), `${path} ${index} is not whole`);
    return block?.tag;
  }

  #at(path: string, index: number): Expected {
    const key = `${path} ${index}`;
    const expected = this.#expected.get(key) ?? { safe: undefined, since: [] };
    this.#expected.set(key, expected);
    return expected;
  }

  #refused(error: unknown): void {
    this.refusals += 1;
    assert(["STORE_FULL", "DISK_FAILED"].includes((error as { code: string }).code), String(error));
  }

  #below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  #chance(probability: number): boolean {
    return this.#random.next() < probability;
  }
}

function contentOf(tag: string, length: number): Buffer {
  return Buffer.alloc(length, tag);
}

function isFull(error: unknown): boolean {
  return (error as { code?: string }).code === "STORE_FULL";
}

function isDown(error: unknown): boolean {
  return (
    (error as Error).cause instanceof PowerLoss ||
    ((error as Error).cause as Error)?.cause instanceof PowerLoss
  );
}

describe("a node's directory", () => {
  test("has the synced or a later state of each block, whole, after any crash, full disk or failure", async () => {
    let [crashes, refusals, removals, creations] = [0, 0, 0, 0];
    for (let seed = 1; seed <= 60 * effort; seed += 1) {
      const life = new Life(seed);
      try {
        await life.run(60);
      } catch (error) {
        throw new Error(`seed ${seed}`, { cause: error });
      }
      crashes += life.crashes;
      refusals += life.refusals;
      removals += life.removals;
      creations += life.creations;
    }
    expect(crashes).toBeGreaterThan(120 * effort);
    expect(refusals).toBeGreaterThan(120 * effort);
    expect(removals).toBeGreaterThan(30 * effort);
    expect(creations).toBeGreaterThan(18 * effort);
  });
});
