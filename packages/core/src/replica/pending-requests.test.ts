import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { LeaseKeepAliveRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { defaultLimits } from "./options.js";
import { PendingRequests } from "./pending-requests.js";

describe("clients' requests", () => {
  const request = create(LeaseKeepAliveRequestSchema);
  /** Number of requests accepted from other clients after one client has sent all it can. */
  const taken = (streams: number) => {
    const requests = new PendingRequests(defaultLimits, () => undefined);
    let id = 0;
    const ask = (client: string) => {
      id += 1;
      try {
        requests.admit(
          { kind: "request", id, client, deadlineMs: 1_000, request: { kind: "leaseKeepAlive", request } },
          id,
          client === "others" ? undefined : new Uint8Array(10),
        );
        return true;
      } catch {
        return false;
      }
    };
    for (let count = 0; count < streams * 1_024; count += 1) ask("greedy");
    let others = 0;
    while (others < 1_000 && ask("others")) others += 1;
    return others;
  };

  test("however many refreshes one client has in flight, another has room for its own", () => {
    expect(taken(16)).toBe(1_000);
    expect(withFaults({ sharesUnfair: true }, () => taken(16))).toBe(0);
  });
});
