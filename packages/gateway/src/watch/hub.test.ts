import { MemoryCluster } from "leasehold/testing";
import { expect, it } from "vitest";
import { type Follower, WatchHub } from "./hub.js";

async function hubOf(epoch = "ab-cd-ef") {
  const cluster = new MemoryCluster();
  const leases = cluster.open("a");
  const hub = new WatchHub(cluster.open("gateway"), cluster.world.timers, () => epoch);
  const follows = (prefix: string, isExact = false) => {
    const seen: string[] = [];
    const ids: string[] = [];
    const follower: Follower = {
      prefix,
      isExact,
      reset: (held) => {
        seen.push("reset");
        for (const { change } of held) seen.push(`${change.state} ${change.resource}`);
      },
      report: ({ id, change }) => {
        seen.push(`${change.state} ${change.resource}`);
        ids.push(id);
      },
    };
    return { follower, seen, ids };
  };
  return { cluster, leases, hub, follows };
}

it("whatever an epoch looks like, a client that reconnects receives what it missed and nothing else", async () => {
  const { cluster, leases, hub, follows } = await hubOf();
  const [first, keeper] = [follows(""), follows("none")];
  const end = hub.follow(first.follower);
  hub.follow(keeper.follower);
  await leases.acquire("one");
  await cluster.advance(10);
  await leases.acquire("two");
  await cluster.advance(10);
  end();
  expect(first.seen).toEqual(["reset", "held one", "held two"]);
  for (const [last, expected] of [
    [first.ids[0]!, ["held two"]],
    [first.ids[1]!, []],
    ["ab-cd-ef-0", ["held one", "held two"]],
    ["ab-cd-ef-3", ["reset", "held one", "held two"]],
    ["ab-cd-2", ["reset", "held one", "held two"]],
    ["2", ["reset", "held one", "held two"]],
    ["", ["reset", "held one", "held two"]],
    ["ab-cd-ef-1e0", ["reset", "held one", "held two"]],
  ] as const) {
    const back = follows("");
    hub.follow(back.follower, last)();
    expect([last, back.seen]).toEqual([last, expected]);
  }
  hub.close();
  await cluster.close();
});

it("each client receives only its prefix or name, and the ground is watched while there is a client", async () => {
  const { cluster, leases, hub, follows } = await hubOf();
  const all = ["", "a", "a/", "a/b", "b"].map((prefix) => follows(prefix));
  const exact = follows("a/b", true);
  const ends = [...all, exact].map(({ follower }) => hub.follow(follower));
  for (const name of ["a/b", "a/bc", "ab", "c"]) {
    await leases.acquire(name);
    await cluster.advance(10);
  }
  expect(all.map(({ seen }) => seen.length - 1)).toEqual([4, 3, 2, 2, 0]);
  expect(exact.seen).toEqual(["reset", "held a/b"]);
  for (const end of ends) {
    end();
    end();
  }
  expect(hub.followers).toBe(0);
  await leases.acquire("a/d");
  await cluster.advance(10);
  expect(all[0]!.seen.length).toBe(5);
  await cluster.close();
});
