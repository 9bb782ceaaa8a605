import type { ResponseHeader } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { keyOf } from "@leasehold/core/inner/state/keys.js";
import { bytes } from "../world/requests.js";
import type { CoreWorld } from "../world/world.js";

/**
 * An acknowledged refresh implies that the lease's keys existed at the revision of its header, and that the
 * answering server had not been deposed when the client asked.
 */
export class Refreshes {
  readonly #world: CoreWorld;

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  /** @param termBefore the newest term with a committed entry when the client asked */
  acknowledged(
    key: string,
    keyRevision: bigint | undefined,
    { raftTerm, revision }: ResponseHeader,
    termBefore: number,
  ): void {
    if (raftTerm < BigInt(termBefore))
      this.#world.report("refresh", `refreshed in term ${raftTerm}, after ${termBefore} had begun`);
    const { revisions } = this.#world.reference.state;
    const at = Number(revision);
    // The key is unknown, or its history compacted.
    if (keyRevision === undefined || revision < keyRevision || at < revisions.compacted) return;
    if (revisions.getAt(keyOf(bytes(key)), at) === undefined)
      this.#world.report("refresh", `refreshed at revision ${revision}, where ${key} was gone`);
  }
}
