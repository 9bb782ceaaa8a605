import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { leasehold, mainPath } from "../support/built.js";
import { Authority } from "../support/pki.js";
import { CoreCluster, CoreProcess, type Program } from "./support/core-cluster.js";
import { etcdctl } from "./support/etcdctl.js";

/** `leasehold status` and `leasehold doctor`, asked of our servers and of a real etcd. */

interface Status {
  readonly name?: string;
  readonly reachable: boolean;
  readonly reason?: string;
  readonly isLeader?: boolean;
  readonly isLearner?: boolean;
  readonly leader?: string;
  readonly lag?: string;
  readonly alarms?: readonly string[];
}

interface Doctor {
  readonly verdict: string;
  readonly servers: readonly Status[];
  readonly findings: readonly { readonly ok: boolean; readonly text: string }[];
}

async function ask(cluster: Pick<CoreCluster, "endpoints">, command: string, ...words: string[]) {
  const all = [command, "--endpoints", `core://${cluster.endpoints}`, "-o", "json", ...words];
  const { code, stderr, stdout } = await leasehold(all).finished;
  return { code, stdout, stderr };
}

async function doctor(cluster: Pick<CoreCluster, "endpoints">, duration = "500ms") {
  const { code, stdout } = await ask(cluster, "doctor", "--duration", duration);
  const { findings, servers, verdict } = JSON.parse(stdout) as Doctor;
  return { code, servers, verdict, said: findings.map(({ text }) => text).join("\n") };
}

async function status(cluster: Pick<CoreCluster, "endpoints">) {
  const { code, stdout } = await ask(cluster, "status");
  return { code, servers: JSON.parse(stdout) as readonly Status[] };
}

const whenStatus = async (cluster: CoreCluster, code: number) =>
  await expect.poll(async () => (await status(cluster)).code, { timeout: 30_000 }).toBe(code);

const preload = (name: string) => `--import=${fileURLToPath(new URL(`support/${name}`, import.meta.url))}`;

for (const program of ["etcd", "leasehold"] as const satisfies Program[]) {
  describe(`three servers of ${program}`, () => {
    let cluster: CoreCluster;
    beforeAll(async () => {
      cluster = await CoreCluster.start(3, { program });
    });
    afterAll(() => cluster[Symbol.asyncDispose]());

    test("status shows one leader and two that follow it, also when one address alone is given", async () => {
      const [first = ""] = String(cluster.endpoints).split(",");
      for (const { code, servers } of [await status({ endpoints: first }), await status(cluster)]) {
        expect({ code, servers: servers.length }).toEqual({ code: 0, servers: 3 });
        expect(servers.filter(({ isLeader }) => isLeader)).toHaveLength(1);
        expect(new Set(servers.map(({ leader }) => leader)).size).toBe(1);
      }
    });

    test("doctor takes and renews leases, and compares clocks where servers tell theirs", async () => {
      const { code, said, verdict } = await doctor(cluster);
      expect([0, 78]).toContain(code);
      expect(verdict).toMatch(/ok|unfit/);
      expect(said).toMatch(/a lease is acquired in [\d.]+ m?s/);
      expect(/steady clocks of servers and this machine run within/.test(said)).toBe(program === "leasehold");
    });

    test("a server that is stopped, or gone, is named with what to do, and with two gone there is no lease", async () => {
      const [one, two] = cluster.servers;
      one!.signal("SIGSTOP");
      await whenStatus(cluster, 0);
      const stopped = (await status(cluster)).servers.find(({ reachable }) => !reachable);
      expect(stopped).toMatchObject({ name: "s1", reason: "no answer within 2 s" });
      expect(await doctor(cluster)).toMatchObject({
        code: 69,
        said: expect.stringMatching(/s1 \(.*\) does not answer: no answer within 2 s. Start it/) as string,
      });
      await one!.kill();
      await whenStatus(cluster, 0);
      const { code, said } = await doctor(cluster);
      expect(code).toBe(69);
      expect(said).toMatch(/s1 \(.*\) does not answer: connection refused.*etcdctl member remove [0-9a-f]+/);
      expect(said).toMatch(/2 of 3 voting servers answer; 2 are needed, so 1 may be missing/);
      await two!.kill();
      await whenStatus(cluster, 69);
      const none = await doctor(cluster);
      expect(none.code).toBe(69);
      expect(none.said).toMatch(/1 of 3 voting servers answer; .*start them/);
      expect(none.said).not.toMatch(/a lease is acquired/);
    }, 60_000);
  });
}

test("a learner is shown as one, and counts neither for nor against a majority", async () => {
  const cluster = await CoreCluster.start(1);
  const [client, peer] = await freePorts(2);
  const peerUrl = `http://127.0.0.1:${peer}`;
  const clientUrl = `http://127.0.0.1:${client}`;
  const [first] = cluster.servers;
  await etcdctl(cluster.endpoints, "member", "add", "new", "--learner", `--peer-urls=${peerUrl}`);
  const words = [
    "--name",
    "new",
    "--data-dir",
    `${first!.dataDir}-new`,
    "--initial-cluster-state",
    "existing",
  ];
  words.push("--initial-cluster", `s1=http://127.0.0.1:${first!.peerPort},new=${peerUrl}`);
  words.push("--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl);
  words.push("--listen-client-urls", clientUrl, "--advertise-client-urls", clientUrl);
  const learner = new CoreProcess("new", `127.0.0.1:${client}`, `${first!.dataDir}-new`, [
    process.execPath,
    mainPath,
    "core",
    ...words,
  ]);
  learner.start();
  try {
    const learns = async () => (await status(cluster)).servers.find(({ isLearner }) => isLearner);
    await expect.poll(learns, { timeout: 20_000 }).toMatchObject({ name: "new", isLeader: false });
    const { said, verdict } = await doctor(cluster);
    expect(said).toMatch(/new learns and has no vote; to give it one: etcdctl member promote [0-9a-f]+/);
    expect(said).toMatch(/1 of 1 voting servers answer/);
    expect(verdict).toMatch(/ok|unfit/);
    await learner.kill();
    const { code, servers } = await status(cluster);
    expect(code).toBe(0);
    expect(servers.find(({ reachable }) => !reachable)).toMatchObject({ name: "new", isLearner: true });
    expect((await doctor(cluster)).code).toBe(69);
  } finally {
    await learner.kill();
    learner.client.close();
    await cluster[Symbol.asyncDispose]();
  }
});

test("a server with a slow disk lags and is named for both, and one whose clock runs away for that", async () => {
  const cluster = await CoreCluster.start(3, {
    environment: (index) =>
      [
        {},
        { NODE_OPTIONS: preload("slow-disk.mjs"), TEST_WRITE_MS: "1500" },
        { NODE_OPTIONS: preload("fast-clock.mjs"), TEST_CLOCK_RATE: "1.5" },
      ][index]!,
    // A server whose disk or clock is faulty must not be elected.
    flags: ["--election-timeout", "5000"],
  });
  try {
    const [first] = cluster.servers;
    const over = new AbortController();
    const load = async () => {
      for (let i = 0; !over.signal.aborted; i += 1)
        await Promise.all(
          Array.from({ length: 256 }, (_, at) => first!.client.put(`k${at}`, `${i}`).catch(() => undefined)),
        );
    };
    const loading = load();
    const lags = async () => {
      const { servers } = await status(cluster);
      return Number(servers.find(({ name }) => name === "s2")?.lag ?? 0);
    };
    await expect.poll(lags, { timeout: 30_000 }).toBeGreaterThan(100);
    over.abort();
    await loading;
    const { code, said } = await doctor(cluster, "2s");
    expect(said).toMatch(/s2 takes [1-9]\.\d s to write to its disk, .*: give the log a faster disk/);
    expect(said).toMatch(/the steady clock of s3 runs (?:4|5)\d\.\d % faster than this machine's/);
    expect(code).toBe(78);
  } finally {
    await cluster[Symbol.asyncDispose]();
  }
});

test("certificates that expire soon are named, the servers' and ours", async () => {
  const authority = new Authority();
  const usage = ["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"];
  const [own, ours] = [5, 20].map((toDays) => authority.issue(usage, { toDays }));
  const flags = ["--cert-file", own!.cert, "--key-file", own!.key, "--trusted-ca-file", own!.ca];
  const cluster = await CoreCluster.create(1, {
    scheme: "https",
    flags: [...flags, "--client-cert-auth", "--peer-auto-tls"],
  });
  try {
    cluster.servers[0]!.start();
    const tls = ["--tls-ca", ours!.ca, "--tls-cert", ours!.cert, "--tls-key", ours!.key];
    await expect.poll(async () => (await ask(cluster, "status", ...tls)).code, { timeout: 30_000 }).toBe(0);
    const { code, stdout } = await ask(cluster, "doctor", "--duration", "300ms", ...tls);
    const said = (JSON.parse(stdout) as Doctor).findings.map(({ text }) => text).join("\n");
    expect(code).toBe(78);
    expect(said).toMatch(
      /s1: the certificate .*\.pem, towards clients, expires in 4 days, on .*: write a renewed/,
    );
    expect(said).toMatch(/this machine: the certificate .*\.pem expires in (?:19|20) days/);
    expect(said).not.toMatch(/fixtures/);
  } finally {
    await cluster[Symbol.asyncDispose]();
    authority.remove();
  }
});
