import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  areSame,
  compact,
  put,
  some,
  stateWith,
  withMeta,
  written,
} from "../../../../../test/support/backups.js";
import { effort } from "../../../../../test/support/effort.js";
import { seedOf } from "../../../../../test/support/seed.js";
import { Xorshift, type LeaseholdError } from "leasehold/common";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { CommandBody } from "../../replica/context.js";
import { restoreState, snapshotPieces } from "../../state/snapshot.js";
import type { CoreState } from "../../state/state.js";
import { finish } from "../../state/steps.js";
import { type Meta, readMeta } from "./bolt/format.js";
import { BoltError, BoltFile } from "./bolt/read.js";
import { readBackup } from "./read-backup.js";
import { stateOf, TooLargeError } from "./state.js";
import { statusOf } from "./status.js";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-backup-"));
  path = join(folder, "one");
});
afterEach(() => rmSync(folder, { recursive: true }));

const removeAll: CommandBody = { case: "deleteRange", value: { key: Buffer.of(1), rangeEnd: Buffer.of(0) } };

/** The memory bound of the state, and of the bytes read from a file. */
const bytesMax = 2 ** 20;

type End = "read" | "damaged" | "too large";

interface Outcome {
  readonly end: End;
  readonly state: CoreState | undefined;
  /** Bytes of keys and values, and of the pages that contain them. */
  readonly readBytes: number;
  readonly asked: number;
}

/** @throws errors that report neither damage nor excessive size */
function endOf(error: unknown): End {
  if (error instanceof TooLargeError) return "too large";
  if (error instanceof BoltError) return "damaged";
  throw error;
}

function outcomeOf(bytes: Buffer): Outcome {
  let asked = 0;
  const source = {
    bytes: bytes.length,
    read: (at: number, length: number) => {
      asked += length;
      if (at + length > bytes.length) throw new Error("more than there is was asked for");
      return Buffer.from(bytes.subarray(at, at + length));
    },
  };
  const of = <Result>(read: (file: BoltFile) => Result): { result?: Result; end: End } => {
    try {
      return { result: read(new BoltFile(source, 2 ** 24)), end: "read" };
    } catch (error) {
      return { end: endOf(error) };
    }
  };
  let readBytes = 0;
  of((file) => {
    for (const { items } of file.buckets())
      for (const { key, value } of items) readBytes += key.length + value.length;
  });
  const askedOnce = asked;
  of((file) => finish(statusOf(file)));
  const { end, result } = of((file) => finish(stateOf(file, bytesMax)));
  return { state: result, end, readBytes, asked: askedOnce };
}

/** Whether later commands have the same outcome on all servers, whatever the state contains. */
function goesOnAlike(state: CoreState): boolean {
  const copy = restoreState(snapshotPieces(state));
  const wasSame = areSame(copy, state);
  for (const body of [put("k1", "later"), removeAll, compact(BigInt(state.revisions.current))])
    for (const server of [state, copy]) server.apply(create(CommandSchema, { body }), 1);
  return wasSame && areSame(copy, state) && state.bytes <= bytesMax;
}

const ends: Record<string, End> = { LOG_CORRUPT: "damaged", INVALID_CONFIG: "too large" };

/** The outcome for a file, with a valid hash. */
function endOfFile(bytes: Buffer): Promise<End | undefined> {
  writeFileSync(path, Buffer.concat([bytes, createHash("sha256").update(bytes).digest()]));
  return readBackup(path, bytesMax).then(
    () => "read",
    (error: unknown) => ends[(error as LeaseholdError).code],
  );
}

/** Damages data that a reader relies on: headers of pages, elements, records, the first pages. */
class Damage {
  readonly #random: Xorshift;

  constructor(seed: number) {
    this.#random = new Xorshift(seed);
  }

  below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  /** Numbers that are likely to break readers, and others close to the present one. */
  #number(now: number, max: number): number {
    const near = now + this.below(65) - 32;
    return Math.min(
      max,
      Math.max(0, this.#oneOf([0, 1, now ^ (1 << this.below(16)), near, near, max >>> 1, max])),
    );
  }

  do(file: Buffer): void {
    const pages = file.length / 4096;
    const page = 4096 * (2 + this.below(pages - 2));
    const elements = file.readUInt16LE(page + 10);
    const element = page + 16 + 16 * this.below(Math.max(1, Math.min(elements, 255)));
    const kinds = [
      () => file.writeUInt16LE(this.#number(elements, 0xffff), page + 10),
      () => file.writeUInt32LE(this.#number(file.readUInt32LE(page + 12), 0xffff_ffff), page + 12),
      () => file.writeUInt16LE(this.#oneOf([0, 1, 2, 4, 0x10]), page + 8),
      () => this.#uint32(file, element + 4 * this.below(4)),
      () => this.#uint32(file, element + 4 * this.below(4)),
      // Duplicates an element of a page, with an inconsistent neighbour.
      () => file.copy(file, element, page + 16 + 16 * this.below(8), element + 16),
      () => file.writeUInt32LE(this.below(pages), element + 8),
      () => file.copy(file, page, 4096 * (2 + this.below(pages - 2)), page + 4096),
      () => (file[page + this.below(4096)]! ^= 1 << this.below(8)),
      () => file.fill(this.#oneOf([0, 0x12, 0xff]), page + this.below(4096), page + 4096),
      () => this.#meta(file, pages),
    ];
    this.#oneOf(kinds)();
  }

  #uint32(file: Buffer, at: number): void {
    file.writeUInt32LE(this.#number(file.readUInt32LE(at), 0xffff_ffff), at);
  }

  #meta(file: Buffer, pages: number): void {
    const meta = readMeta(file.subarray(0, 4096)) as Meta;
    const changes: Partial<Meta>[] = [
      { root: this.below(pages + 2) },
      { pages: this.#number(pages, 2 ** 31) },
    ];
    withMeta(file, { ...meta, ...this.#oneOf(changes) });
  }
}

const small = () => stateWith(...some().slice(0, 40), ...some().slice(-12));
const large = () =>
  stateWith(
    ...some(),
    ...Array.from({ length: 60 }, (_, number) => put(`v${number}`, "v".repeat(number * 90))),
  );

test("a deliberately damaged file is read or refused as damaged, within its bounds", async () => {
  const damage = new Damage(seedOf());
  const files = [small, large].map((state) => written(state()).subarray(0, -32));
  const counts = { read: 0, damaged: 0, "too large": 0 };
  for (let round = 0; round < 60 * effort; round += 1) {
    const file = Buffer.from(files[round % files.length]!);
    for (let times = 1 + damage.below(4); times > 0; times -= 1) damage.do(file);
    const { asked, end, state, readBytes } = outcomeOf(file);
    expect(readBytes).toBeLessThanOrEqual(file.length);
    expect(asked).toBeLessThanOrEqual(2 * file.length + 70 * 1_024);
    expect(state === undefined || goesOnAlike(state)).toBe(true);
    counts[end] += 1;
    expect(round % 10 === 0 ? await endOfFile(file) : end).toBe(end);
  }
  expect(counts.read).toBeGreaterThan(4 * effort);
  expect(counts.damaged).toBeGreaterThan(15 * effort);
});
