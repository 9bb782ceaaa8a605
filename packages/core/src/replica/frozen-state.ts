import type { ResponseHeader } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { SnapshotMeta } from "../raft/types.js";
import { CoreError } from "../state/errors.js";
import { frozen, type SnapshotSource } from "../state/snapshot.js";
import type { Context } from "./context.js";

/**
 * One server's content at one moment, for hashes and backups while the server continues. Nothing is copied.
 */
export interface FrozenState {
  readonly $typeName: "leasehold.FrozenState";
  header?: ResponseHeader;
  readonly meta: SnapshotMeta;
  readonly source: SnapshotSource;
  /** Approximate memory of the state. */
  readonly bytes: number;
}

/**
 * Must not be called while a command is partly applied (`isApplying`).
 *
 * @throws CoreError `noLeader` before the first leader has written the core's id: before that, backups of two
 *   cores could be equal, and cores restored from equal backups have equal ids
 */
export function freeze(context: Context): FrozenState {
  const { appliedIndex, raft, state } = context;
  if (state.cluster === 0n) throw new CoreError("noLeader");
  return {
    $typeName: "leasehold.FrozenState",
    header: context.header(),
    meta: raft.snapshotMeta(appliedIndex),
    source: frozen(state),
    bytes: state.bytes,
  };
}
