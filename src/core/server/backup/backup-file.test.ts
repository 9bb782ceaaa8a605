import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CommandBody } from "../../replica/context.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CommandSchema } from "../../gen/leasehold/command_pb.js";
import { frozen, snapshotPieces } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { finish } from "../../state/steps.js";
import { backupBytes, readBackup } from "./backup-file.js";
import { hashOfAll, hashOfKeys } from "./hashes.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-backup-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function stateWith(...bodies: CommandBody[]): CoreState {
  const state = new CoreState();
  for (const body of bodies) state.apply(create(CommandSchema, { body }), 1);
  return state;
}

const put = (key: string, value: string): CommandBody => ({
  case: "put",
  value: { key: Buffer.from(key), value: Buffer.from(value) },
});
const compact = (revision: bigint): CommandBody => ({ case: "compact", value: { revision } });

const some = (): CommandBody[] => [
  { case: "bootstrap", value: { cluster: 9n, members: [{ id: 1n, name: "a", peerUrls: ["http://a:1"] }] } },
  { case: "leaseGrant", value: { ID: 5n, TTL: 60n } },
  ...Array.from({ length: 300 }, (_, number) => put(`k${number % 40}`, `value ${number}`)),
  { case: "deleteRange", value: { key: Buffer.from("k7") } },
];

function frozenState(state: CoreState): FrozenState {
  const meta = { index: 7, term: 2, membership: { voters: [1n], learners: [] } };
  return { $typeName: "leasehold.FrozenState", meta, source: frozen(state), bytes: state.bytes };
}

test("a backup has all of the state, and its end as etcdctl wants it", async () => {
  const state = stateWith(...some());
  const bytes = Buffer.concat([...backupBytes(frozenState(state))]);
  expect(bytes.length % 512).toBe(32);
  const path = join(folder, "one");
  writeFileSync(path, bytes);
  const backup = await readBackup(path);
  expect(backup.head).toEqual({ cluster: 9n, index: 7, term: 2, revision: 302 });
  expect([...snapshotPieces(backup.state)]).toEqual([...snapshotPieces(state)]);
});

test("a backup of which a byte is another one, or that is cut off, is refused", async () => {
  const path = join(folder, "one");
  writeFileSync(path, Buffer.concat([...backupBytes(frozenState(stateWith(...some())))]));
  const whole = readFileSync(path);
  for (let at = 0; at < whole.length; at += 97) {
    const damaged = Buffer.from(whole);
    damaged[at]! ^= 1;
    writeFileSync(path, damaged);
    await expect(readBackup(path)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
    writeFileSync(path, whole.subarray(0, at));
    await expect(readBackup(path)).rejects.toMatchObject({ code: "LOG_CORRUPT" });
  }
});

test("what was written while a backup is read is not in it", async () => {
  const state = stateWith(...some());
  const before = [...snapshotPieces(state)];
  const parts: Buffer[] = [];
  for (const part of backupBytes(frozenState(state))) {
    parts.push(part);
    state.apply(create(CommandSchema, { body: put("k1", `later ${parts.length}`) }), 1);
  }
  const path = join(folder, "one");
  writeFileSync(path, Buffer.concat(parts));
  expect([...snapshotPieces((await readBackup(path)).state)]).toEqual(before);
});

test("servers with the same history have the same hash of keys, whatever they have removed of it", () => {
  const one = stateWith(...some(), compact(200n));
  const other = stateWith(...some(), compact(100n), compact(200n));
  finish(other.revisions.sweep());
  const hash = (state: CoreState, revision: bigint) => finish(hashOfKeys(frozenState(state), revision));
  expect(hash(one, 0n)).toBe(hash(other, 0n));
  expect(hash(one, 250n)).toBe(hash(other, 250n));
  expect(hash(one, 250n)).not.toBe(hash(one, 251n));
  expect(finish(hashOfAll(frozenState(one)))).toBe(finish(hashOfAll(frozenState(other))));
  expect(hash(one, 0n)).not.toBe(hash(stateWith(...some(), put("k1", "x"), compact(200n)), 0n));
});

test("a hash of what was compacted, or is not there yet, is refused as at etcd", () => {
  const state = frozenState(stateWith(...some(), compact(200n)));
  expect(() => finish(hashOfKeys(state, 200n))).toThrow("required revision has been compacted");
  expect(() => finish(hashOfKeys(state, 500n))).toThrow("required revision is a future revision");
});
