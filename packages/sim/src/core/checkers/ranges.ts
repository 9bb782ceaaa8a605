import type { RangeRequest, RangeResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { keyOf } from "@leasehold/core/inner/state/keys.js";
import { finish } from "@leasehold/core/inner/state/steps.js";
import type { CoreWorld } from "../world/world.js";

/** A range of many keys reflects the state at one revision, however many turns the read took. */
export class Ranges {
  readonly #world: CoreWorld;

  constructor(world: CoreWorld) {
    this.#world = world;
  }

  heard(request: RangeRequest, response: RangeResponse): void {
    const { state } = this.#world.reference;
    const revision = request.revision > 0n ? request.revision : response.header!.revision;
    // The revision has been compacted.
    if (Number(revision) < state.revisions.compacted) return;
    const expected = finish(state.read({ ...request, revision }));
    const [got, should] = [response, expected].map(
      ({ count, kvs }) =>
        `${count}: ${kvs.map(({ key, modRevision }) => `${keyOf(key)}@${modRevision}`).join()}`,
    );
    if (got !== should) this.#world.report("range", `at revision ${revision} came ${got}, and not ${should}`);
  }
}
