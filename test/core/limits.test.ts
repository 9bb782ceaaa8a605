import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { TxnRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { bytes } from "./support/client.js";
import { CoreCluster, type CoreProcess } from "./support/core-cluster.js";

const run = promisify(execFile);

/** etcdctl's answer, or its error. */
async function etcdctl(cluster: CoreCluster, ...words: string[]): Promise<string> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  const { stdout } = await run("etcdctl", ["--endpoints", cluster.endpoints, ...words], { env });
  return stdout;
}

const mebibyte = "x".repeat(1_048_576);

async function revisionOf(server: CoreProcess): Promise<bigint> {
  return (await server.client.status()).header!.revision;
}

test("a core that is full says so, and goes on when there is room and etcdctl has put out the alarm", async () => {
  await using cluster = await CoreCluster.start(3, { flags: ["--quota-backend-bytes", "16777216"] });
  const [server] = cluster.servers;
  const fill = async () => {
    for (let number = 0; number < 40; number += 1) await server!.client.put(`full/${number}`, mebibyte);
  };
  await expect(fill()).rejects.toMatchObject({
    code: 8,
    details: "etcdserver: mvcc: database space exceeded",
  });
  expect(await etcdctl(cluster, "alarm", "list")).toMatch(/^memberID:\d+ alarm:NOSPACE/);
  await expect(etcdctl(cluster, "put", "a", "1")).rejects.toThrow("database space exceeded");
  expect(await etcdctl(cluster, "del", "full/", "--prefix")).toMatch(/^\d+/);
  await expect
    .poll(() => etcdctl(cluster, "alarm", "disarm").then(() => put()), { timeout: 20_000, interval: 500 })
    .toBe("OK\n");
  expect(await etcdctl(cluster, "alarm", "list")).toBe("");

  async function put(): Promise<string> {
    await new Promise((resolve) => setTimeout(resolve, 500));
    return etcdctl(cluster, "put", "a", "1").catch(String);
  }
});

test("a hundred megabytes of history in one key are read again, from the own disk and by a server that was away", async () => {
  const flags = [
    "--snapshot-count",
    "30",
    "--auto-compaction-retention",
    "0",
    "--quota-backend-bytes",
    "1073741824",
  ];
  await using cluster = await CoreCluster.start(3, { flags });
  const [one, other, away] = cluster.servers;
  await away!.kill();
  for (let number = 0; number < 100; number += 1) await one!.client.put("k", `${number} ${mebibyte}`, 30_000);
  const revision = await revisionOf(one!);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  for (const server of [one!, other!]) await server.kill();
  for (const server of cluster.servers) server.start();
  await cluster.ready(90_000);
  for (const server of cluster.servers) {
    await expect.poll(() => revisionOf(server), { timeout: 60_000 }).toBe(revision);
    expect(await server.client.get("k", 30_000)).toMatch(/^99 x/);
  }
});

test("half a million changes do not end a server that has 150 MB", async () => {
  await using cluster = await CoreCluster.start(1, { nodeFlags: ["--max-old-space-size=150"] });
  const [server] = cluster.servers;
  let left = 4_000;
  const worker = async () => {
    while (left-- > 0) {
      const success = Array.from({ length: 128 }, (_, number) => ({
        request: {
          case: "requestPut" as const,
          value: { key: bytes(`k${number}`), value: bytes(`${left}`) },
        },
      }));
      await server!.client.call("KV", "Txn", create(TxnRequestSchema, { success }), 60_000);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  const { dbSizeInUse, header } = await server!.client.status();
  process.stdout.write(
    `revision ${header!.revision}, 512,000 changes: ${(Number(dbSizeInUse) / 1e6).toFixed(0)} MB of state\n`,
  );
  expect(server!.isRunning).toBe(true);
  expect(await server!.client.get("k0")).toBeDefined();
  expect(Number(dbSizeInUse)).toBeLessThan(100e6);
});
