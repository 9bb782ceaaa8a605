import { execFile } from "node:child_process";
import { get } from "node:http";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { MemberRemoveRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/cluster_pb.js";
import { mainPath } from "../support/built.js";
import { CoreCluster, type CoreProcess } from "./support/core-cluster.js";
import { tamperWith } from "./support/tampered.js";

/** Servers whose disks contain something other than what was written there, with all checksums valid. */

const run = promisify(execFile);
const patience = { timeout: 60_000, interval: 200 };
const testMsMax = 300_000;

async function etcdctl(cluster: CoreCluster, ...words: string[]): Promise<string> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  const { stdout } = await run("etcdctl", ["--endpoints", cluster.endpoints, ...words], { env });
  return stdout;
}

/**
 * Snapshots are taken often, because snapshots are what the test changes. What is not in a snapshot yet comes
 * from the log.
 */
const flags = ["--snapshot-count", "10"];

const initialCheck = "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK";

interface Checked {
  readonly cluster: CoreCluster;
  /** What each process gets at its next start. */
  readonly environments: Record<string, string>[];
}

async function filled(count: number, more: readonly string[] = []): Promise<Checked> {
  const environments = Array.from({ length: count }, () => ({}));
  const cluster = await CoreCluster.start(count, {
    flags: [...flags, ...more],
    environment: (index) => environments[index]!,
  });
  for (let number = 0; number < 30; number += 1)
    await cluster.servers[0]!.client.put(`k${number % 5}`, `value ${number}`);
  return { cluster, environments };
}

async function idOf(server: CoreProcess): Promise<bigint> {
  return (await server.client.status()).header!.memberId;
}

/** Stops a follower, and changes the data on its disk. */
async function tamperedFollower(cluster: CoreCluster): Promise<CoreProcess> {
  const leader = await cluster.leader();
  const server = cluster.servers.find((each) => each !== leader)!;
  await server.kill();
  await tamperWith(server.dataDir, "k1");
  return server;
}

function health({ endpoint }: CoreProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = get(`http://${endpoint}/health`, (answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += String(chunk)));
      answer.on("end", () => resolve(`${answer.statusCode} ${text}`));
    });
    asked.on("error", reject);
  });
}

test(
  "--experimental-corrupt-check-time: a server that differs is named, and nothing changes until that is over",
  async () => {
    const { cluster } = await filled(3, ["--experimental-corrupt-check-time", "1s"]);
    await using _ = cluster;
    const leader = await cluster.leader();
    expect(await etcdctl(cluster, "alarm", "list")).toBe("");
    const wrong = await tamperedFollower(cluster);
    wrong.start();
    await expect.poll(() => etcdctl(cluster, "alarm", "list").catch(String), patience).not.toBe("");
    const id = await idOf(wrong);
    expect(await etcdctl(cluster, "alarm", "list")).toBe(`memberID:${id} alarm:CORRUPT \n`);
    await expect
      .poll(() => leader.output, patience)
      .toMatch(`the keys of ${wrong.name} are not those of a majority`);
    const changes = [
      ["put", "k1", "x"],
      ["del", "k1"],
      ["compact", "5"],
      ["lease", "grant", "60"],
    ];
    await Promise.all(
      changes.map((words) =>
        expect(etcdctl(cluster, ...words)).rejects.toThrow("etcdserver: corrupt cluster"),
      ),
    );
    await expect(leader.client.put("k1", "x")).rejects.toMatchObject({ code: 15 });
    expect(await etcdctl(cluster, "get", "k1", "--print-value-only")).toMatch(/value/);
    expect(await health(leader)).toBe('503 {"health":"false"}');
    expect(await etcdctl(cluster, "endpoint", "status")).toMatch(`memberID:${id} alarm:CORRUPT`);
    const doctor = await run(process.execPath, [
      mainPath,
      "doctor",
      "--endpoints",
      `core://${cluster.endpoints}`,
    ]).catch((error: { stdout: string }) => error);
    expect(doctor.stdout).toMatch(`the keys of ${wrong.name} are not those of the other servers`);
    // When it is disarmed while the corruption persists, the alarm is raised again.
    await etcdctl(cluster, "alarm", "disarm");
    await expect.poll(() => etcdctl(cluster, "alarm", "list"), patience).toMatch("CORRUPT");
    const remove = create(MemberRemoveRequestSchema, { ID: id });
    await leader.client.call("Cluster", "MemberRemove", remove);
    expect(await wrong.ended()).toBe(77);
    await expect.poll(() => leader.client.put("k1", "x").then(() => "done", String), patience).toBe("done");
    expect(await etcdctl(cluster, "alarm", "list").catch(String)).not.toMatch("CORRUPT");
  },
  testMsMax,
);

test(
  "--experimental-initial-corrupt-check: a server with other keys does not serve, and the others do",
  async () => {
    const { cluster, environments } = await filled(3);
    await using _ = cluster;
    const wrong = await tamperedFollower(cluster);
    const index = cluster.servers.indexOf(wrong);
    environments[index]![initialCheck] = "true";
    wrong.output = "";
    wrong.start();
    expect(await wrong.ended()).toBe(77);
    expect(wrong.output).toMatch(
      /found data inconsistency with peers: at revision \d+ its keys are not those of s\d, s\d/,
    );
    expect(wrong.output).not.toMatch(/serves clients/);
    const leader = await cluster.leader();
    await leader.client.put("k1", "goes on");

    // Without the check the server serves. Then a sound one continues with it, because two of three have the
    // same data.
    delete environments[index]![initialCheck];
    wrong.start();
    const right = cluster.servers.find((each) => each !== wrong && each !== leader)!;
    await cluster.ready();
    await right.kill();
    environments[cluster.servers.indexOf(right)]![initialCheck] = "true";
    right.start();
    await cluster.ready();
    expect(right.output).toMatch(`the keys of ${wrong.name} are not those of a majority`);
    expect(right.output).toMatch(`initial check: the same keys as ${leader.name}`);

    // While the only other server with the same data is down, nobody can tell which is right: the server
    // waits, and ends when it is told to.
    await leader.kill();
    await right.kill();
    right.output = "";
    right.start();
    await expect.poll(() => right.output, patience).toMatch(/before a majority says who is right/);
    right.signal("SIGTERM");
    expect(await right.ended()).toBe(0);
    right.output = "";
    right.start();
    await expect.poll(() => right.output, patience).toMatch(/before a majority says who is right/);
    expect(right.output).not.toMatch(/serves clients/);
    leader.start();
    await cluster.ready();
    expect(right.output).toMatch(`initial check: the same keys as ${leader.name}`);
  },
  testMsMax,
);

test(
  "--experimental-initial-corrupt-check: of three that begin, the last one late, only the one that is wrong ends",
  async () => {
    const { cluster } = await filled(3, ["--experimental-initial-corrupt-check"]);
    await using _ = cluster;
    const wrong = await tamperedFollower(cluster);
    const [early, late] = cluster.servers.filter((server) => server !== wrong) as [CoreProcess, CoreProcess];
    await Promise.all([early.kill(), late.kill()]);
    for (const server of cluster.servers) server.output = "";
    wrong.start();
    early.start();
    for (const server of [wrong, early])
      await expect.poll(() => server.output, patience).toMatch(/before a majority says who is right/);
    late.start();
    for (const server of [early, late])
      await expect
        .poll(() => server.output, patience)
        .toMatch(/initial check: the same keys[^]*serves clients/);
    expect(await wrong.ended()).toBe(77);
    expect(wrong.output).toMatch(
      /found data inconsistency with peers: at revision \d+ its keys are not those of s\d, s\d/,
    );
    await late.client.put("k1", "goes on");
  },
  testMsMax,
);

test(
  "--experimental-initial-corrupt-check: equal servers serve, together and alone, and with users",
  async () => {
    const check = "--experimental-initial-corrupt-check";
    const { cluster } = await filled(3, [check]);
    await using _ = cluster;
    await etcdctl(cluster, "user", "add", "root:secret");
    await etcdctl(cluster, "auth", "enable");
    const [one] = cluster.servers;
    await one!.kill();
    one!.output = "";
    one!.start();
    await expect
      .poll(() => one!.output, patience)
      .toMatch(/initial check: the same keys as s2, s3 at revision/);
    await expect.poll(() => one!.output, patience).toMatch(/serves clients/);
    expect(one!.output).not.toMatch("cannot catch up");
    // All servers at once, as after a power cut; then a server whose peers do not answer.
    await Promise.all(cluster.servers.map((server) => server.kill()));
    for (const server of cluster.servers) server.output = "";
    for (const server of cluster.servers) server.start();
    for (const server of cluster.servers)
      await expect
        .poll(() => server.output, patience)
        .toMatch(/initial check: the same keys[^]*serves clients/);
    await Promise.all(cluster.servers.map((server) => server.kill()));
    one!.output = "";
    one!.start();
    await expect.poll(() => one!.output, patience).toMatch(/serves clients/);
    expect(one!.output).toMatch(/cannot catch up \(etcdserver: no leader\)[^]*s2, s3 did not answer/);
  },
  testMsMax,
);
