import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { leasehold } from "../support/built.js";
import { CoreCluster, type Program } from "./support/core-cluster.js";
import { etcdctl } from "./support/etcdctl.js";

/** docs/moving.md, with the script that it names, on real servers of both kinds. */

const script = fileURLToPath(new URL("../../examples/move-keys.mjs", import.meta.url));

interface Key {
  readonly key: string;
  readonly value: string;
  readonly lease?: string | number;
  readonly create_revision: number;
}

async function look(endpoint: string, prefix: string) {
  const text = await etcdctl(endpoint, "get", prefix, "--prefix", "-w", "json");
  const { header, kvs = [] } = JSON.parse(text) as { header: { revision: number }; kvs?: Key[] };
  const pairs = kvs.map(({ key, value = "" }) =>
    [key, value].map((each) => Buffer.from(each, "base64").toString()),
  );
  return { revision: header.revision, keys: kvs, pairs: Object.fromEntries(pairs) as Record<string, string> };
}

/** Runs a lease of Leasehold there, and says which token it had. */
async function tokenAt(endpoint: string): Promise<bigint> {
  const words = [
    "run",
    "--endpoints",
    `core://${endpoint}`,
    "nightly",
    "--",
    "sh",
    "-c",
    "echo $LEASE_TOKEN",
  ];
  const { code, stderr, stdout } = await leasehold(words).finished;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return BigInt(stdout.trim());
}

for (const [source, target] of [
  ["etcd", "leasehold"],
  ["leasehold", "etcd"],
] as const satisfies [Program, Program][])
  test(`from ${source} to ${target}, while a program writes: keys and values, no leases, no smaller tokens`, async () => {
    await using old = await CoreCluster.start(3, { program: source });
    await using next = await CoreCluster.start(3, { program: target });
    const [from, to] = [old.servers[0]!.endpoint, next.servers[0]!.endpoint];
    for (let i = 0; i < 300; i += 1)
      await old.servers[0]!.client.put(`config/${i % 50}`, `value ${i}\nline two`);
    await etcdctl(from, "put", "other/1", "stays");
    const granted = await etcdctl(from, "lease", "grant", "600");
    const lease = /lease ([0-9a-f]+) granted/.exec(granted)![1]!;
    await etcdctl(from, "put", "config/registered", "by a program", `--lease=${lease}`);
    const before = await tokenAt(from);

    const moving = spawn(process.execPath, [script, from, to, "config/"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [moving.stdout, moving.stderr]) stream.on("data", (text) => (said += String(text)));
    await expect.poll(() => said, { timeout: 20_000 }).toMatch(/press Enter/);
    // Written and deleted while it copies.
    for (let i = 0; i < 50; i += 1) {
      await old.servers[1]!.client.put(`config/late-${i}`, `${i}`);
      await sleep(5);
    }
    await etcdctl(from, "del", "config/7");
    moving.stdin.end("\n");
    const [code] = (await once(moving, "close")) as [number];
    expect({ code, said }).toMatchObject({ code: 0 });
    expect(said).toMatch(/1 keys that hang on leases were not moved/);

    const [there, here] = [await look(from, ""), await look(to, "")];
    const { "config/registered": gone, "other/1": others, ...kept } = there.pairs;
    expect([gone, others]).toEqual(["by a program", "stays"]);
    expect(here.pairs).toEqual(kept);
    expect(Object.keys(here.pairs)).toHaveLength(99);
    expect(here.keys.filter(({ lease: its }) => its)).toEqual([]);
    expect(here.revision).toBeGreaterThan(there.revision);
    expect(await tokenAt(to)).toBeGreaterThan(before);
    // A second time it would mix two states.
    const again = spawn(process.execPath, [script, from, to, "config/"], { stdio: "ignore" });
    expect((await once(again, "close"))[0]).not.toBe(0);
  });
