import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  AlarmRequest_AlarmAction as Action,
  AlarmRequestSchema,
  AlarmType,
  type HashKVResponse,
  HashKVRequestSchema,
} from "../../packages/leasehold/src/etcd/gen/etcd/cluster_pb.js";
import {
  CompactionRequestSchema,
  DeleteRangeRequestSchema,
  PutRequestSchema,
  RequestOpSchema,
  TxnRequestSchema,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { Xorshift } from "../../packages/leasehold/src/common/xorshift.js";
import { bytes } from "../core/support/client.js";
import { CoreCluster, type CoreProcess, type Program } from "../core/support/core-cluster.js";
import { etcdctl } from "../core/support/etcdctl.js";
import { leasehold, mainPath } from "../support/built.js";
import { seedOf } from "../support/seed.js";
import { makeHistory, wholeContent } from "./whole-content.js";

/** `etcdctl snapshot save` from one program and `restore` to the other, with real servers of both kinds. */

const run = promisify(execFile);
const entry = join(mainPath, "../../entry/etcd.js");
const { openNamedLeases } = (await import(
  entry
)) as typeof import("../../packages/leasehold/src/entry/etcd.js");

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lh-backups-"));
  file = join(folder, "backup.db");
});
afterEach(() => rm(folder, { recursive: true }));

async function offline(...words: string[]): Promise<string> {
  const { stdout } = await run("etcdctl", words, { env: { ...process.env, ETCDCTL_API: "3" } });
  return stdout;
}

async function ours(...words: string[]): Promise<string> {
  const { code, stderr, stdout } = await leasehold(["core", ...words]).finished;
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/** Starts servers with the content of the file. */
async function restored(program: Program, count: number, ...more: string[]): Promise<CoreCluster> {
  const cluster = await begun(program, count, ...more);
  await cluster.ready();
  return cluster;
}

async function begun(program: Program, count: number, ...more: string[]): Promise<CoreCluster> {
  const cluster = await CoreCluster.create(count, { program });
  const peer = ({ peerPort }: CoreProcess) => `http://127.0.0.1:${peerPort}`;
  const initial = cluster.servers.map((server) => `${server.name}=${peer(server)}`).join(",");
  for (const server of cluster.servers) {
    const words = ["--name", server.name, "--data-dir", server.dataDir, "--initial-cluster", initial];
    words.push("--initial-advertise-peer-urls", peer(server), ...more);
    await (program === "etcd"
      ? offline("snapshot", "restore", file, ...words)
      : ours("restore", file, ...words));
    server.start();
  }
  return cluster;
}

const hashAt = async ({ client }: CoreProcess, revision = 0n): Promise<number> => {
  const request = create(HashKVRequestSchema, { revision });
  return (await client.call<HashKVResponse>("Maintenance", "HashKV", request)).hash;
};

const statusBy = async (program: Program): Promise<unknown> =>
  JSON.parse(
    program === "etcd"
      ? await offline("snapshot", "status", file, "-w", "json")
      : await ours("snapshot", "status", file, "--output", "json"),
  );

test("from the core to an etcd: everything that clients can read is the same, and the hash equals etcd's own", async () => {
  await using core = await CoreCluster.start(1);
  await using etcd = await CoreCluster.start(1, { program: "etcd" });
  for (const { servers } of [core, etcd]) await makeHistory(servers[0]!.client);
  await etcdctl(core.endpoints, "snapshot", "save", file);
  expect(await statusBy("leasehold")).toEqual(await statusBy("etcd"));
  await using next = await restored("etcd", 1);
  const content = await wholeContent(core.servers[0]!.client);
  expect(await wholeContent(next.servers[0]!.client)).toEqual(content);
  expect(await wholeContent(etcd.servers[0]!.client)).toEqual(content);
  expect(await hashAt(next.servers[0]!)).toBe(await hashAt(etcd.servers[0]!));
  for (const revision of [0n, 151n, 160n, 180n])
    expect(await hashAt(core.servers[0]!, revision)).toBe(await hashAt(etcd.servers[0]!, revision));
  // The etcd continues as after any restore, and its defragmentation and compaction find a well-formed
  // database.
  await next.servers[0]!.client.put("k3", "again");
  await etcdctl(next.endpoints, "defrag");
  await etcdctl(next.endpoints, "lease", "revoke", (77).toString(16));
  expect(await next.servers[0]!.client.get("k2")).toBeUndefined();
});

test("after arbitrary changes of keys, the core's hash equals etcd's, also in an etcd that restored its backup", async () => {
  await using core = await CoreCluster.start(1);
  await using etcd = await CoreCluster.start(1, { program: "etcd" });
  const both = [core, etcd].map(({ servers }) => servers[0]!);
  const random = new Xorshift(seedOf());
  const below = (end: number) => Math.floor(random.next() * end);
  const differences: string[] = [];
  const looked = { hashes: 0, empty: 0 };
  let [compacted, newest] = [0, 1];
  const compare = async (servers: readonly CoreProcess[], revision: number) => {
    const [one, other] = await Promise.all(servers.map((server) => hashAt(server, BigInt(revision))));
    looked.hashes += 1;
    if (one !== other) differences.push(`${revision} of ${newest}, compacted at ${compacted}`);
  };
  for (let round = 0; round < 30; round += 1) {
    for (let change = below(12); change > 0; change -= 1) {
      const [method, request] = randomChange(below);
      for (const { client } of both) await client.call("KV", method, request);
    }
    if (below(4) === 0) {
      const all = create(DeleteRangeRequestSchema, { key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) });
      for (const { client } of both) await client.call("KV", "DeleteRange", all);
      looked.empty += 1;
    }
    newest = Number((await both[0]!.client.range("k1")).header!.revision);
    if (below(3) === 0 && compacted < newest) {
      compacted += 1 + below(newest - compacted);
      const request = create(CompactionRequestSchema, { revision: BigInt(compacted), physical: true });
      for (const { client } of both) await client.call("KV", "Compact", request);
    }
    const tries = compacted < newest ? 4 : 0;
    for (let each = 0; each < tries; each += 1)
      await compare(both, compacted + 1 + below(newest - compacted));
    await compare(both, 0);
  }
  await etcdctl(core.endpoints, "snapshot", "save", file);
  await using next = await restored("etcd", 1);
  await compare([both[1]!, next.servers[0]!], 0);
  expect(differences).toEqual([]);
  expect(looked.hashes).toBeGreaterThan(80);
  expect(looked.empty).toBeGreaterThan(2);
});

/** A put, a deletion of some keys, or several of these in one transaction. */
function randomChange(below: (end: number) => number): [method: string, request: unknown] {
  const put = (index: number) => ({ key: bytes(`k${index}`), value: bytes(`v${below(1_000)}`) });
  const [from, kind] = [below(8), below(4)];
  const range = { key: bytes(`k${from}`), rangeEnd: bytes(`k${from + below(4)}`) };
  if (kind === 0) return ["DeleteRange", create(DeleteRangeRequestSchema, range)];
  if (kind > 1) return ["Put", create(PutRequestSchema, put(from))];
  const success = [
    ...[from, from + 1].map((index) =>
      create(RequestOpSchema, { request: { case: "requestPut", value: put(index) } }),
    ),
    create(RequestOpSchema, {
      request: { case: "requestDeleteRange", value: { key: bytes(`k${from + 2}`) } },
    }),
  ];
  return ["Txn", create(TxnRequestSchema, { success })];
}

test("from an etcd to three servers of the core, by a snapshot and by a copy of its database", async () => {
  await using etcd = await CoreCluster.start(1, { program: "etcd" });
  const [old] = etcd.servers as [CoreProcess];
  await makeHistory(old.client);
  await etcdctl(etcd.endpoints, "snapshot", "save", file);
  expect(await statusBy("leasehold")).toEqual(await statusBy("etcd"));
  const content = await wholeContent(old.client);
  await using three = await restored("leasehold", 3);
  for (const { client } of three.servers) expect(await wholeContent(client)).toEqual(content);
  await etcdctl(three.endpoints, "lease", "revoke", (88).toString(16));
  expect(await three.servers[1]!.client.get("t1")).toBeUndefined();
  await old.kill("SIGTERM");
  await copyFile(join(old.dataDir, "member/snap/db"), file);
  await expect(restored("leasehold", 1)).rejects.toThrow("--skip-hash-check");
  await using one = await restored("leasehold", 1, "--skip-hash-check");
  expect(await wholeContent(one.servers[0]!.client)).toEqual(content);
});

test("from the core to a core, an etcd and back: leases keep their ids", async () => {
  await using core = await CoreCluster.start(1);
  await makeHistory(core.servers[0]!.client);
  const open = (endpoints: string) => openNamedLeases([`core://${endpoints}`]);
  const named = await open(core.endpoints);
  const lease = await named.register("nightly", "1h");
  named.close();
  const content = await wholeContent(core.servers[0]!.client);
  await etcdctl(core.endpoints, "snapshot", "save", file);
  for (const program of ["leasehold", "etcd", "leasehold"] as const) {
    await using next = await restored(program, 1);
    expect(await wholeContent(next.servers[0]!.client)).toEqual(content);
    await etcdctl(next.endpoints, "snapshot", "save", `${file}.next`);
    await copyFile(`${file}.next`, file);
    if (program === "etcd") continue;
    const there = await open(next.endpoints);
    expect(await there.find("nightly")).toEqual(lease);
    expect(await there.register("nightly", "1h")).toBeUndefined();
    there.close();
  }
});

test("an alarm, users, roles and rights are the same at the etcd as at the core", async () => {
  await using core = await CoreCluster.start(1);
  const root = ["--user", "root:secret"];
  for (const words of [
    ["user add root:secret"],
    ["user add reader --no-password"],
    ["user grant-role root root"],
    ["role add reading"],
    ["role grant-permission reading read a z"],
    ["role grant-permission reading --prefix=true readwrite zz"],
    ["user grant-role reader reading"],
  ])
    await etcdctl(core.endpoints, ...words[0]!.split(" "));
  const look = async (endpoints: string, ...who: string[]) => {
    const questions = [
      "user list",
      "user get reader --detail",
      "role list",
      "role get reading",
      "alarm list",
    ];
    const answers: string[] = [];
    for (const each of questions) answers.push(await etcdctl(endpoints, ...who, ...each.split(" ")));
    return answers;
  };
  const { header } = await core.servers[0]!.client.status();
  const alarm = { action: Action.ACTIVATE, memberID: header!.memberId, alarm: AlarmType.NOSPACE };
  await core.servers[0]!.client.call("Maintenance", "Alarm", create(AlarmRequestSchema, alarm));
  const answers = await look(core.endpoints);
  expect(answers.join("")).toContain("alarm:NOSPACE");
  await etcdctl(core.endpoints, "snapshot", "save", file);
  await using there = await restored("etcd", 1);
  expect(await look(there.endpoints)).toEqual(answers);
  await etcdctl(core.endpoints, "auth", "enable");
  await etcdctl(core.endpoints, ...root, "snapshot", "save", file);
  // etcd stores passwords in another form, so they must be set anew before authentication is switched on.
  const said = (endpoints: string) =>
    look(endpoints, ...root).then(
      (all) => all.slice(0, 4),
      ({ stderr }: { stderr: string }) => /authentication failed/.exec(stderr)?.[0],
    );
  await using locked = await begun("etcd", 1);
  await expect.poll(() => said(locked.endpoints), { timeout: 20_000 }).toBe("authentication failed");
  await using back = await begun("leasehold", 1);
  await expect.poll(() => said(back.endpoints), { timeout: 20_000 }).toEqual(answers.slice(0, 4));
});

test("users of an etcd log in at the core with their passwords, and have the same rights there", async () => {
  await using etcd = await CoreCluster.start(1, { program: "etcd" });
  for (const words of [
    "user add root:secret",
    "user grant-role root root",
    "user add reader:read",
    "role add reading",
    "role grant-permission reading read a z",
    "user grant-role reader reading",
    "put k v",
    "auth enable",
  ])
    await etcdctl(etcd.endpoints, ...words.split(" "));
  await etcdctl(etcd.endpoints, "--user", "root:secret", "snapshot", "save", file);
  await using core = await begun("leasehold", 1);
  const as = (user: string, ...words: string[]) =>
    etcdctl(core.endpoints, "--user", user, ...words).catch(({ stderr }: { stderr: string }) => stderr);
  await expect.poll(() => as("reader:read", "get", "k"), { timeout: 20_000 }).toBe("k\nv\n");
  expect(await as("reader:other", "get", "k")).toContain("authentication failed");
  expect(await as("reader:read", "put", "k", "w")).toContain("permission denied");
  expect(await as("root:secret", "put", "k", "w")).toBe("OK\n");
});
