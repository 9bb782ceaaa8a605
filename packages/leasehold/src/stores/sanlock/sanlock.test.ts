import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { decodeRecord, encodeRecord } from "../../delta/record/codec.js";
import type { DeltaRecord } from "../../delta/record/record.js";
import { farmRegister, type StoreAnswer } from "../../delta/store.js";
import { checkLeader, decodeLeader, encodeLeader } from "./leader-record.js";
import { openSanlockStore } from "./open.js";
import type { OpenedStore } from "../common/contract.js";

/**
 * Sectors written by sanlock 3.8.5: a host id that was never used, and host 3 that is alive, in a lockspace
 * called LS.
 */
const unused =
  "10202112040003001000000000020000000000000000000001000000000000000000000000000000" +
  "00000000000000000000000000000000" +
  "4c53".padEnd(96, "0") +
  "".padEnd(96, "0") +
  "00000000000000000000000000000000c074f1b000000a00";
const live =
  "10202112040003001000000000020000000000000000000001000000000000000300000000000000" +
  "01000000000000000000000000000000" +
  "4c53".padEnd(96, "0") +
  "39653734636364372d353664302d346636342d383862382d6638656265663732623837652e766d".padEnd(96, "0") +
  "523b00000000000000000000000000008538a2be00000100";

const sectorOf = (hex: string) => {
  const sector = new Uint8Array(512);
  sector.set(Buffer.from(hex, "hex"));
  return sector;
};

const record: DeltaRecord = {
  resource: "3",
  epoch: 7n,
  number: 123_456_789_012n,
  writer: "a-host-with-a-name-of-some-length.example:9f8e7d6c5b4a-0001",
  nonce: 42,
  state: "held",
  leaseMs: 15_000,
  delayMs: 250,
};

test("sanlock's records are decoded as sanlock means them", () => {
  expect(() => checkLeader(sectorOf(unused), "LS")).not.toThrow();
  expect(decodeLeader(sectorOf(unused), "3")).toBeUndefined();
  expect(() => checkLeader(sectorOf(live), "LS")).not.toThrow();
  expect(decodeLeader(sectorOf(live), "3")).toEqual({
    resource: "3",
    epoch: 1n,
    number: (1n << 40n) + 0x3b52n,
    writer: "sanlock:9e74ccd7-56d0-4f64-88b8-f8ebef72b87e.vm",
    nonce: 0x3b52,
    state: "held",
    leaseMs: 68_000,
    delayMs: 1_000,
  });
});

test("Leasehold's records decode to what was encoded, and are valid records of sanlock", () => {
  for (const state of ["held", "free"] as const) {
    const sector = sectorOf(unused);
    encodeLeader(sector, 3, { ...record, state });
    expect(() => checkLeader(sector, "LS")).not.toThrow();
    expect(decodeLeader(sector, "3")).toEqual({ ...record, state });
  }
});

test("a number that follows one of sanlock's is kept whole, however large the generation", () => {
  const sector = sectorOf(live);
  new DataView(sector.buffer).setBigUint64(40, 5_072_001_154n, true);
  const number = decodeLeader(sector, "3")!.number + 1n;
  encodeLeader(sector, 3, { ...record, number });
  expect(decodeLeader(sector, "3")!.number).toBe(number);
});

test("the time that sanlock sees changes with every write, and is never 0 while it is held", () => {
  const timeOf = (number: bigint) => {
    const sector = sectorOf(unused);
    encodeLeader(sector, 3, { ...record, number });
    return new DataView(sector.buffer).getBigUint64(152, true);
  };
  for (const number of [0n, 1n, 0xffff_fffen, 0xffff_ffffn, 0x1_0000_0000n]) {
    expect(timeOf(number)).not.toBe(0n);
    expect(timeOf(number)).not.toBe(timeOf(number + 1n));
  }
});

test("damage, another lockspace, another version and records that do not fit are errors", () => {
  const sector = sectorOf(unused);
  encodeLeader(sector, 3, record);
  for (let byte = 0; byte < 256; byte += 1) {
    const damaged = sector.slice();
    damaged[byte]! ^= 1;
    const read = () => {
      checkLeader(damaged, "LS");
      decodeLeader(damaged, "3");
    };
    expect(read, `byte ${byte}`).toThrow(/no delta lease|version|checksum|lockspace/);
  }
  expect(() => checkLeader(sector, "OTHER")).toThrow(/lockspace/);
  expect(() => encodeLeader(sector, 3, { ...record, writer: "x".repeat(80) })).toThrow(/room/);
  expect(() => encodeLeader(sector, 3, { ...record, number: 1n << 96n })).toThrow(/room/);
  expect(() => encodeLeader(sector, 3, { ...record, writer: "é" })).toThrow(/ASCII/);
});

let directory: string;
let path: string;
let store: OpenedStore | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "leasehold-sanlock-"));
  path = join(directory, "lockspace");
  const area = Buffer.alloc(1 << 20);
  for (let host = 0; host < 2_000; host += 1) area.set(sectorOf(unused), host * 512);
  // The marker, whose creation would take two δ.
  area.write('leasehold-sanlock/1 {"id":"marker-of-a-test"} 1e63899c', 2_047 * 512);
  await writeFile(path, area);
});

afterEach(async () => {
  await store?.close();
  await rm(directory, { recursive: true });
});

async function openStore(): Promise<OpenedStore> {
  return (store = await openSanlockStore(new URL(`sanlock:${path}?lockspace=LS`), { writer: "w" }));
}

const put = (register: string, next: Uint8Array): Promise<StoreAnswer> =>
  store!.perform({ op: "put", register, next });
const read = (register: string): Promise<StoreAnswer> => store!.perform({ op: "read", register });

test("host ids are resources, and nothing else is", async () => {
  await openStore();
  expect(await read("lease/3")).toMatchObject({ kind: "cells", id: "marker-of-a-test", cells: [] });
  expect(await put("lease/3", encodeRecord({ ...record, label: "not kept" }))).toMatchObject({
    kind: "written",
  });
  const answer = await read("lease/3");
  expect(answer.kind === "cells" && answer.cells.map(decodeRecord)).toEqual([record]);
  expect(await store!.perform({ op: "list", prefix: "lease/", registersMax: 9 })).toMatchObject({
    registers: new Map([["lease/3", [encodeRecord(record)]]]),
  });
  for (const name of ["lease/0", "lease/2001", "lease/03", "lease/name", "other"]) {
    expect(await read(name)).toMatchObject({ kind: "failed", error: { code: "UNSUPPORTED" } });
  }
});

test("the farm's register is stored behind the hosts", async () => {
  await openStore();
  expect(await read(farmRegister)).toMatchObject({ cells: [] });
  const farm = new TextEncoder().encode("leasehold-farm/1 {} 00000000");
  expect(await put(farmRegister, farm)).toMatchObject({ kind: "written" });
  expect(await read(farmRegister)).toMatchObject({ cells: [farm], id: "marker-of-a-test" });
});

test("a foreign sector is not overwritten", async () => {
  await openStore();
  const file = await open(path, "r+");
  await file.write(Buffer.from("something else"), 0, 14, 2 * 512);
  await file.close();
  const before = await readFile(path);
  expect(await put("lease/3", encodeRecord(record))).toMatchObject({
    kind: "failed",
    error: { code: "STORE_FOREIGN" },
  });
  expect((await readFile(path)).equals(before)).toBe(true);
});
