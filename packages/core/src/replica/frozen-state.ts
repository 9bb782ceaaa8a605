import type { ResponseHeader } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { SnapshotMeta } from "../raft/types.js";
import { frozen, type SnapshotSource } from "../state/snapshot.js";
import type { Context } from "./context.js";

/** What one server has at one moment, while it goes on: for hashes, and for a backup. Nothing is copied. */
export interface FrozenState {
  readonly $typeName: "leasehold.FrozenState";
  header?: ResponseHeader;
  readonly meta: SnapshotMeta;
  readonly source: SnapshotSource;
  /** What the state takes in memory, about. */
  readonly bytes: number;
}

/** Not to be called within a command (`isApplying`). */
export function freeze(context: Context): FrozenState {
  const { appliedIndex, raft, state } = context;
  return {
    $typeName: "leasehold.FrozenState",
    header: context.header(),
    meta: raft.snapshotMeta(appliedIndex),
    source: frozen(state),
    bytes: state.bytes,
  };
}
