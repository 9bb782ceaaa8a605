import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { expect } from "vitest";
import { Permission_Type as Type } from "../../packages/leasehold/src/etcd/gen/etcd/authpb_pb.js";
import { CommandSchema } from "../../packages/leasehold/src/etcd/gen/leasehold/command_pb.js";
import type { CommandBody } from "../../packages/core/src/replica/context.js";
import type { FrozenState } from "../../packages/core/src/replica/frozen-state.js";
import { backupBytes, planBackup } from "../../packages/core/src/server/backup/backup-file.js";
import { type Meta, metaPage, readMeta } from "../../packages/core/src/server/backup/bolt/format.js";
import type { Item } from "../../packages/core/src/server/backup/bolt/tree.js";
import { databasePages, planDatabase } from "../../packages/core/src/server/backup/bolt/write.js";
import { bucketsOf } from "../../packages/core/src/server/backup/buckets.js";
import { frozen, restoreState, snapshotPieces } from "../../packages/core/src/state/snapshot.js";
import { CoreState } from "../../packages/core/src/state/state.js";
import { finish } from "../../packages/core/src/state/steps.js";

/** Backups of states, and backup files with altered content. */

export function stateWith(...bodies: CommandBody[]): CoreState {
  const state = new CoreState();
  for (const body of bodies) state.apply(create(CommandSchema, { body }), 1);
  return state;
}

export const put = (key: string, value: string, lease = 0n): CommandBody => ({
  case: "put",
  value: { key: Buffer.from(key), value: Buffer.from(value), lease },
});
export const remove = (key: string): CommandBody => ({
  case: "deleteRange",
  value: { key: Buffer.from(key) },
});
export const compact = (revision: bigint): CommandBody => ({ case: "compact", value: { revision } });
export const bootstrap: CommandBody = {
  case: "bootstrap",
  value: { cluster: 9n, members: [{ id: 1n, name: "a", peerUrls: ["http://a:1"] }] },
};

export const some = (): CommandBody[] => [
  bootstrap,
  { case: "leaseGrant", value: { ID: 5n, TTL: 60n } },
  { case: "leaseGrant", value: { ID: -7n, TTL: 61n } },
  { case: "registerLease", value: { name: "nächtlich", ttl: 62n, id: 6n } },
  put("leased", "x", -7n),
  ...Array.from({ length: 300 }, (_, number) => put(`k${number % 40}`, `value ${number}`)),
  remove("k7"),
  // Several changes in one revision.
  { case: "deleteRange", value: { key: Buffer.from("k1"), rangeEnd: Buffer.from("k2") } },
  { case: "userAdd", value: { name: "root", secret: Buffer.from("$scrypt$…") } },
  { case: "userAdd", value: { name: "nobody" } },
  { case: "roleAdd", value: { name: "reader" } },
  {
    case: "roleGrantPermission",
    value: {
      name: "reader",
      perm: { key: Buffer.from("k"), rangeEnd: Buffer.from("l"), permType: Type.READ },
    },
  },
  { case: "userGrantRole", value: { user: "root", role: "root" } },
  { case: "userGrantRole", value: { user: "nobody", role: "reader" } },
  { case: "authEnable", value: {} },
];

export function frozenState(state: CoreState): FrozenState {
  const meta = { index: 7, term: 2, membership: { voters: [1n], learners: [] } };
  return { $typeName: "leasehold.FrozenState", meta, source: frozen(state), bytes: state.bytes };
}

export function written(state: CoreState): Buffer {
  const plan = finish(planBackup(frozenState(state)));
  const bytes = Buffer.concat([...backupBytes(plan)]);
  expect(bytes.length).toBe(plan.bytes);
  return bytes;
}

/** The content with which a restored core begins: without members and alarms of the old core. */
export function contentOf(state: CoreState): Buffer {
  const copy = restoreState(snapshotPieces(state));
  copy.becomeNew();
  return Buffer.concat([...snapshotPieces(copy)]);
}

export function areSame(one: CoreState, other: CoreState): boolean {
  return contentOf(one).equals(contentOf(other));
}

/** A backup file whose buckets have these items in addition to its own, or in place of them. */
export function fileOf(
  state: CoreState,
  changes: Record<string, readonly [key: Uint8Array, value: Uint8Array][]>,
) {
  const ours = finish(bucketsOf(frozenState(state)));
  const buckets = ours.map(({ items, name }) => ({
    name,
    items: () => {
      const added = (changes[name] ?? []).map(([key, value]) => itemOf(key, value));
      const kept = [...items()].filter((item) => added.every((other) => !isSame(item, other)));
      return [...kept, ...added].sort((one, other) => Buffer.compare(one.key(), other.key()));
    },
  }));
  const database = Buffer.concat([...databasePages(finish(planDatabase(buckets)))]);
  return Buffer.concat([database, createHash("sha256").update(database).digest()]);
}

function itemOf(key: Uint8Array, value: Uint8Array): Item {
  return { keyBytes: key.length, valueBytes: value.length, key: () => key, value: () => value };
}

function isSame(one: Item, other: Item): boolean {
  return Buffer.compare(one.key(), other.key()) === 0;
}

/** Alters the first page's metadata, and makes that page the newer one. */
export const withMeta = (file: Buffer, changes: Partial<Meta>) => {
  const meta = { ...(readMeta(file.subarray(0, 4096)) as Meta), ...changes, transaction: 9n };
  file.set(metaPage(0, 2, { ...meta, pageBytes: 4096 }));
  if (changes.pageBytes !== undefined)
    file.set(metaPage(0, 2, { ...meta, pageBytes: changes.pageBytes }).subarray(0, 80));
};
