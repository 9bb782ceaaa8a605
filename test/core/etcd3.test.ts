import { Etcd3 } from "etcd3";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CoreCluster } from "./support/core-cluster.js";

/** npm's `etcd3`, unmodified: its own recipes for locks and elections, too. */
describe.each([1, 3, 5])("etcd3 and %i servers", (count) => {
  let cluster: CoreCluster;
  let client: Etcd3;
  beforeAll(async () => {
    cluster = await CoreCluster.start(count);
    client = new Etcd3({ hosts: cluster.servers.map(({ endpoint }) => `http://${endpoint}`) });
  });
  afterAll(async () => {
    client.close();
    await cluster[Symbol.asyncDispose]();
  });

  test("keys are put, found by prefix, sorted and deleted", async () => {
    await client.put("k/1").value("one");
    await client.put("k/2").value("two");
    expect(await client.get("k/1").string()).toBe("one");
    expect(await client.getAll().prefix("k/").sort("Key", "Descend").keys()).toEqual(["k/2", "k/1"]);
    expect((await client.delete().prefix("k/")).deleted).toBe("2");
    expect(await client.get("k/1")).toBeNull();
  });

  test("a transaction that creates a key succeeds once, and not again", async () => {
    const create = () => client.if("once", "Create", "==", 0).then(client.put("once").value("me")).commit();
    expect((await create()).succeeded).toBe(true);
    expect((await create()).succeeded).toBe(false);
  });

  test("a watch tells each change once, in order", async () => {
    const watcher = await client.watch().prefix("w/").create();
    const seen: string[] = [];
    watcher.on("put", ({ key, value }) => seen.push(`${key}=${value}`));
    watcher.on("delete", ({ key }) => seen.push(`${key}!`));
    for (let number = 0; number < 20; number++) await client.put(`w/${number}`).value(number);
    await client.delete().prefix("w/");
    const puts = Array.from({ length: 20 }, (_, number) => `w/${number}=${number}`);
    const deletions = Array.from({ length: 20 }, (_, number) => `w/${number}!`).sort();
    await expect.poll(() => seen.length).toBe(40);
    expect(seen).toEqual([...puts, ...deletions]);
    await watcher.cancel();
  });

  test("a lease is kept alive for longer than its time, and its key goes when it is revoked", async () => {
    const lease = client.lease(1);
    await lease.put("leased").value("x");
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(await client.get("leased").string()).toBe("x");
    await lease.revoke();
    expect(await client.get("leased")).toBeNull();
  });

  test("a lock has one holder at a time", async () => {
    let inside = 0;
    let most = 0;
    let taken = 0;
    const worker = async () => {
      for (let round = 0; round < 4;) {
        const lock = client.lock("lock").ttl(5);
        if ((await lock.acquire().catch(() => undefined)) === undefined) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        most = Math.max(most, ++inside);
        await new Promise((resolve) => setTimeout(resolve, 5));
        inside--;
        taken++;
        round++;
        await lock.release();
      }
    };
    await Promise.all([worker(), worker(), worker()]);
    expect({ most, taken }).toEqual({ most: 1, taken: 12 });
  });

  test("an election passes on when its leader resigns", async () => {
    const election = client.election("singleton", 5);
    const first = election.campaign("first");
    await new Promise<void>((resolve, reject) => first.on("elected", resolve).on("error", reject));
    const second = election.campaign("second");
    const elected = new Promise<void>((resolve, reject) => second.on("elected", resolve).on("error", reject));
    expect(await election.leader()).toBe("first");
    await first.resign();
    await elected;
    expect(await election.leader()).toBe("second");
    await second.resign();
  });
});
