import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LeaseKeepAliveRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { FairShares } from "leasehold/common";
import { defaultLimits } from "./options.js";
import { PendingRequests } from "./pending-requests.js";

test("a greedy client gets half, several get equal shares, and as much is left for the next", () => {
  const shares = new FairShares<number>(1_200);
  const had = [0, 0, 0, 0, 0];
  for (let client = 0; client < had.length; client += 1) {
    while (shares.take(client, 1)) had[client]! += 1;
    // Each gives back now and then, and then takes what it can get.
    for (let round = 0; round < 2_000; round += 1) {
      const one = round % (client + 1);
      shares.giveBack(one, 1);
      had[one]! -= 1;
      while (shares.take(one, 1)) had[one]! += 1;
    }
    for (const each of had.slice(0, client + 1))
      expect(each).toBeGreaterThanOrEqual(1_200 / (client + 2) - 2);
    expect(shares.hasRoomFor(99)).toBe(true);
  }
});

test("no client has more than was free when it took it, nothing is given out twice, and a client without any gets what is free", () => {
  const step = fc.record({
    client: fc.nat(4),
    amount: fc.integer({ min: 1, max: 40 }),
    isTaking: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const shares = new FairShares<number>(100);
      const had = [0, 0, 0, 0, 0];
      for (const { client, amount, isTaking } of steps) {
        const own = had[client]!;
        const free = 100 - had.reduce((sum, each) => sum + each, 0);
        const given = isTaking ? -amount : Math.min(amount, own);
        const isDone = isTaking ? shares.take(client, amount) : given > 0;
        expect(isDone).toBe(isTaking ? own + amount <= free : own > 0);
        if (isDone && !isTaking) shares.giveBack(client, given);
        if (isDone) had[client] = own - given;
      }
    }),
  );
});

describe("clients' requests", () => {
  const request = create(LeaseKeepAliveRequestSchema);
  /** How many of the others' first requests are taken when one client has asked for all it can get. */
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

  test("however many refreshes one client has under way, another has room for its own", () => {
    expect(taken(16)).toBe(1_000);
    expect(withFaults({ sharesUnfair: true }, () => taken(16))).toBe(0);
  });
});
