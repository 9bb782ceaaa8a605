// How to test your program's reaction to the loss of a lease, without sleeping and without a cluster:
//
//   node --test test-your-code.test.mjs
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryCluster } from "leasehold/testing";

/** The code under test: the leases are a parameter, so a test can pass its own. */
async function copyAll(leases, items, store) {
  const lease = await leases.acquire("copy");
  try {
    for (const item of items) {
      lease.assertHeld(1_000);
      await store.write(item, lease.token);
    }
  } finally {
    await lease.release();
  }
}

/** A store that records its writes, and lets a test interfere just before a write. */
function makeStore(beforeWrite = async () => {}) {
  const written = [];
  let greatest = 0n;
  return {
    written,
    async write(item, token) {
      await beforeWrite(item);
      if (token < greatest) throw new Error("stale token");
      greatest = token;
      written.push(item);
    },
  };
}

test("copies everything while the lease is held, however long it takes", async () => {
  const cluster = new MemoryCluster({ ttlMax: "15s" });
  const store = makeStore(() => cluster.advance("1m")); // a minute of virtual time: four times the lease's ttl
  await copyAll(cluster.open("one"), ["a", "b", "c"], store);
  assert.deepEqual(store.written, ["a", "b", "c"]);
  await cluster.close();
});

test("stops when the network fails in the middle, before another begins", async () => {
  const cluster = new MemoryCluster({ ttlMax: "15s" });
  const store = makeStore(async (item) => {
    if (item !== "b") return;
    cluster.cutOff("one"); // from now on its renewals reach no member …
    await cluster.advance("20s"); // … and the lease expires before the write of "b" returns
  });
  await assert.rejects(copyAll(cluster.open("one"), ["a", "b", "c"], store), { code: "LEASE_LOST" });
  assert.deepEqual(store.written, ["a", "b"]);
  await cluster.close();
});

test("stops after its event loop was blocked for longer than the lease", async () => {
  const cluster = new MemoryCluster({ ttlMax: "15s" });
  const store = makeStore(async (item) => {
    if (item === "a") cluster.world.block("20s"); // no timer ran, so there was no renewal and no notification
  });
  await assert.rejects(copyAll(cluster.open("one"), ["a", "b"], store), { code: "LEASE_LOST" });
  assert.deepEqual(store.written, ["a"]);
  await cluster.close();
});

test("a write that was under way for too long is refused by its token", async () => {
  const cluster = new MemoryCluster({ ttlMax: "15s" });
  const store = makeStore(async (item) => {
    if (item !== "slow") return;
    cluster.lose("copy"); // another becomes the holder between our check and our write
    await copyAll(cluster.open("two"), ["quick"], store);
  });
  await assert.rejects(copyAll(cluster.open("one"), ["slow"], store), /stale token/);
  assert.deepEqual(store.written, ["quick"]);
  await cluster.close();
});
