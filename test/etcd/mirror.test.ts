import { spawn } from "node:child_process";
import { once } from "node:events";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { DeleteRangeRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { bytes } from "../core/support/client.js";
import { CoreCluster, type CoreProcess, type Program } from "../core/support/core-cluster.js";

/**
 * `etcdctl make-mirror` between ours and a real etcd, in both directions: a way to move to a bigger etcd, and
 * back.
 */

const ways: readonly (readonly [from: Program, to: Program])[] = [
  ["leasehold", "etcd"],
  ["etcd", "leasehold"],
];

test.each(ways)("etcdctl mirrors existing keys, puts and deletions, from %s to %s", async (...way) => {
  const [from, to] = await Promise.all(way.map((program) => CoreCluster.start(1, { program })));
  const [{ client: source, endpoint }] = from!.servers as [CoreProcess];
  const [{ client: target, endpoint: mirror }] = to!.servers as [CoreProcess];
  const keys = Array.from({ length: 30 }, (_, index) => `m/${String(index).padStart(2, "0")}`);
  for (const key of keys) await source.put(key, `of ${key}`);
  await source.put("elsewhere", "is not mirrored");
  const words = [
    `--endpoints=${endpoint}`,
    "make-mirror",
    "--prefix",
    "m/",
    "--dest-prefix",
    "copy/",
    mirror,
  ];
  const mirroring = spawn("etcdctl", words, { env: { ...process.env, ETCDCTL_API: "3" }, stdio: "ignore" });
  const value = (key: string) => target.get(key);
  try {
    await expect.poll(() => value("copy/29"), { timeout: 20_000 }).toBe("of m/29");
    await source.put("m/new", "put later");
    await source.put("m/00", "changed");
    await source.call("KV", "DeleteRange", create(DeleteRangeRequestSchema, { key: bytes("m/01") }));
    await source.put("m/last", "put last");
    await expect.poll(() => value("copy/last"), { timeout: 20_000 }).toBe("put last");
    expect(await Promise.all(["copy/00", "copy/01", "copy/02", "copy/new", "elsewhere"].map(value))).toEqual([
      "changed",
      undefined,
      "of m/02",
      "put later",
      undefined,
    ]);
  } finally {
    mirroring.kill("SIGKILL");
    await once(mirroring, "close");
    await Promise.all([from, to].map((each) => each![Symbol.asyncDispose]()));
  }
});
