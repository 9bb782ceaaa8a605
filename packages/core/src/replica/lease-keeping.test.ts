import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { CoreError } from "../state/errors.js";
import { LeaseGrantRequestSchema, LeaseRevokeRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";

const id = 5n;
const grant = (TTL: bigint) =>
  ({ kind: "leaseGrant", request: create(LeaseGrantRequestSchema, { ID: id, TTL }) }) as const;
const revoke = { kind: "leaseRevoke", request: create(LeaseRevokeRequestSchema, { ID: id }) } as const;

/** @returns how many leases were lost that were granted under the id of a lease about to expire */
function lostSuccessors(): number {
  let lost = 0;
  // Slow disks: requests are in the log for a while before they are applied.
  for (let afterMs = 1_900; afterMs < 2_200; afterMs += 25) {
    const cluster = new VirtualCluster({ latencyMs: 1, writeMs: 80 });
    const leader = cluster.leader();
    cluster.outcome(leader, grant(2n));
    cluster.run(afterMs);
    const revoked = cluster.send(leader, revoke);
    // So that the grant follows the revocation.
    cluster.run(15);
    const granted = cluster.send(leader, grant(600n));
    cluster.run(1_000);
    const isGranted = granted.outcome !== undefined && !(granted.outcome instanceof CoreError);
    if (
      isGranted &&
      revoked.outcome !== undefined &&
      !(revoked.outcome instanceof CoreError) &&
      leader.replica!.status().leases === 0
    )
      lost += 1;
  }
  return lost;
}

test("a lease granted under a revoked lease's id does not end by an expiry found before", () => {
  expect(lostSuccessors()).toBe(0);
  withFaults({ endsWhateverHasTheId: true }, () => expect(lostSuccessors()).toBeGreaterThan(0));
});
