import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";
import { bytes, type Client } from "./support/client.js";
import { CoreProcess } from "./support/core-cluster.js";
import { Load, sleep } from "./support/load.js";

/** Servers of the previous version and of this one in one cluster, restarted one after another under load. */

/** The last commit whose servers support version 7 of the protocol between servers, and no later one. */
const formerCommit = "287ec86f";
const root = fileURLToPath(new URL("../..", import.meta.url));
const waitMsMax = 60_000;
const testMsMax = 600_000;

function hasHistory(): boolean {
  try {
    execFileSync("git", ["cat-file", "-e", `${formerCommit}^{commit}`], { cwd: root, stdio: "ignore" });
    return true;
  } catch {
    process.stdout.write(`skipped: ${formerCommit} is not in this clone's history\n`);
    return false;
  }
}

const isThere = hasHistory();
const folder = mkdtempSync(join(tmpdir(), "lh-upgrade-"));
const formerRoot = join(folder, "former");
const formerMain = join(formerRoot, "dist", "src", "cli", "main.js");
const all: CoreProcess[] = [];

beforeAll(() => {
  if (!isThere) return;
  execFileSync("git", ["worktree", "add", "--detach", formerRoot, formerCommit], {
    cwd: root,
    stdio: "ignore",
  });
  symlinkSync(join(root, "node_modules"), join(formerRoot, "node_modules"));
  execFileSync(process.execPath, [join("scripts", "build.mjs")], { cwd: formerRoot, stdio: "ignore" });
}, testMsMax);

afterAll(async () => {
  for (const { client } of all) client.close();
  await Promise.all(all.map((server) => server.kill()));
  if (isThere)
    execFileSync("git", ["worktree", "remove", "--force", formerRoot], { cwd: root, stdio: "ignore" });
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

type Version = "former" | "present";

interface Place {
  readonly former: CoreProcess;
  readonly present: CoreProcess;
  running: Version;
  /** One restart after the other. */
  restarting: Promise<void>;
}

async function places(cluster: string): Promise<Place[]> {
  const ports = (await freePorts(6)).map((port) => `http://127.0.0.1:${port}`);
  const initial = [0, 1, 2].map((index) => `s${index}=${ports[index + 3]}`).join(",");
  return [0, 1, 2].map((index): Place => {
    const dataDir = join(folder, `${cluster}-s${index}`);
    const [client, peer] = [ports[index]!, ports[index + 3]!];
    const words = ["--name", `s${index}`, "--data-dir", dataDir, "--initial-cluster", initial];
    words.push("--listen-client-urls", client, "--advertise-client-urls", client);
    words.push("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--log-level", "info");
    const processOf = (main: string) => {
      const command = [process.execPath, main, "core", ...words];
      const server = new CoreProcess(`s${index}`, new URL(client).host, dataDir, command);
      all.push(server);
      return server;
    };
    return {
      former: processOf(formerMain),
      present: processOf(mainPath),
      running: "former",
      restarting: Promise.resolve(),
    };
  });
}

async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = performance.now() + waitMsMax;
  while (performance.now() < endMs) {
    if (await Promise.resolve(holds()).catch(() => false)) return;
    await sleep(100);
  }
  throw new Error(`${what}: ${all.map(({ name, output }) => `${name}: ${output.slice(-1_500)}`).join("\n")}`);
}

const serves = (server: CoreProcess) =>
  eventually(`${server.name} serves`, async () => {
    await server.client.put("serves", server.name, 2_000);
    return true;
  });

/** Stops one server cleanly and starts it with another version. */
async function stopAndStart(place: Place, version: Version): Promise<void> {
  await place[place.running].kill("SIGTERM");
  place.running = version;
  place[version].start();
}

/** The next one waits until it serves. */
async function restart(place: Place, version: Version): Promise<void> {
  await stopAndStart(place, version);
  await serves(place[version]);
}

/** Receives each write of one key, however often its stream ends. */
class Watcher {
  readonly #clients: readonly Client[];
  readonly revisions: number[] = [];
  #isOver = false;
  #next = 1;

  constructor(clients: readonly Client[]) {
    this.#clients = clients;
    // It ends when its clients are closed.
    this.#run().catch(() => undefined);
  }

  async #run(): Promise<void> {
    for (let number = 0; !this.#isOver; number += 1) {
      await this.#watch(this.#clients[number % this.#clients.length]!);
      await sleep(50);
    }
  }

  #watch(client: Client): Promise<void> {
    const stream = client.stream<WatchRequest, WatchResponse>("Watch", "Watch");
    const createRequest = { key: bytes("watched"), startRevision: BigInt(this.#next) };
    const ended = new Promise<void>((resolve) => stream.on("error", () => resolve()).on("end", resolve));
    stream.on("data", ({ canceled, events }: WatchResponse) => {
      if (canceled) stream.cancel();
      for (const { kv } of events) {
        this.revisions.push(Number(kv!.modRevision));
        this.#next = Number(kv!.modRevision) + 1;
      }
    });
    stream.write(
      create(WatchRequestSchema, { requestUnion: { case: "createRequest", value: createRequest as never } }),
    );
    return ended;
  }

  end(): void {
    this.#isOver = true;
  }
}

/** Keeps one lease alive at any server that answers. The lease must not be lost. */
async function keepAlive(clients: readonly Client[], ID: bigint, over: AbortSignal): Promise<number> {
  let answers = 0;
  for (let number = 0; !over.aborted; number += 1) {
    const stream = clients[number % clients.length]!.stream<unknown, LeaseKeepAliveResponse>(
      "Lease",
      "LeaseKeepAlive",
    );
    const answered = new Promise<number>((resolve) => {
      stream.on("data", ({ TTL }: LeaseKeepAliveResponse) => resolve(Number(TTL)));
      stream.on("error", () => resolve(-1)).on("end", () => resolve(-1));
      setTimeout(() => resolve(-1), 1_500);
    });
    stream.write(create(LeaseKeepAliveRequestSchema, { ID }));
    const ttl = await answered;
    stream.cancel();
    if (ttl === 0) throw new Error("the lease was lost");
    if (ttl > 0) answers += 1;
    await sleep(200);
  }
  return answers;
}

/** Clients that use a cluster while its servers are restarted. `judge` checks that nothing was lost. */
async function clientsOf(servers: readonly Place[]) {
  const former = servers.map((place) => place.former);
  const clients = former.map(({ client }) => client);
  await clients[0]!.call("Lease", "LeaseGrant", create(LeaseGrantRequestSchema, { ID: 77n, TTL: 15n }));
  const over = new AbortController();
  const keeping = keepAlive(clients, 77n, over.signal);
  keeping.catch(() => undefined);
  const watcher = new Watcher(clients);
  const load = new Load(former, 6, 3);
  const written: number[] = [];
  const writing = (async () => {
    for (let number = 0; !over.signal.aborted; number += 1) {
      const client = clients[number % clients.length]!;
      const put = await client.put("watched", `${number}`, 1_500).catch(() => undefined);
      if (put !== undefined) written.push(Number(put.header!.revision));
      await sleep(50);
    }
  })();
  const judge = async () => {
    await sleep(2_000);
    over.abort();
    await Promise.all([load.end(), writing]);
    expect(await keeping).toBeGreaterThan(10);
    expect(load.judge()).toBe("linearizable");
    expect(written.length).toBeGreaterThan(20);
    await eventually("the watch has seen what was written last", () =>
      watcher.revisions.includes(written.at(-1)!),
    );
    watcher.end();
    expect(watcher.revisions).toEqual([...new Set(watcher.revisions)].sort((one, other) => one - other));
    expect(written.filter((revision) => !watcher.revisions.includes(revision))).toEqual([]);
  };
  return { judge };
}

const raised = "the cluster speaks version 8 from now on";

async function formerCluster(name: string): Promise<[Place, Place, Place]> {
  const servers = await places(name);
  for (const { former } of servers) former.start();
  for (const { former } of servers) await serves(former);
  return servers as [Place, Place, Place];
}

test.runIf(isThere)(
  "servers are upgraded one by one, rolled back, and upgraded again, and nothing that was acknowledged is lost",
  async () => {
    const servers = await formerCluster("rolled");
    const { judge } = await clientsOf(servers);
    const [first, second, third] = servers;
    for (const place of [first, second]) await restart(place, "present");
    // While one server has the former version, so does the cluster, and a downgrade is possible.
    for (const { present } of [first, second]) expect(present.output).not.toContain("speaks version 8");
    for (const place of [first, second]) await restart(place, "former");
    for (const place of [first, second, third]) await restart(place, "present");
    await eventually("the version is raised", () =>
      servers.every(({ present }) => present.output.includes(raised)),
    );
    await judge();

    // Now a downgrade is no longer possible, and both report that.
    await third.present.kill("SIGTERM");
    third.former.output = "";
    third.former.start();
    expect(await third.former.ended()).not.toBe(0);
    expect(third.former.output).toContain("is of a newer version of Leasehold");
    third.present.start();
    await serves(third.present);
  },
  testMsMax,
);

test.runIf(isThere)(
  "two who upgrade the same cluster at once, each from another end, lose nothing",
  async () => {
    const servers = await formerCluster("twice");
    const { judge } = await clientsOf(servers);
    // Each of them restarts every server, also one that the other one has upgraded, or is waiting for.
    const upgrade = async (order: readonly Place[]) => {
      for (const place of order) {
        place.restarting = place.restarting.then(() => stopAndStart(place, "present"));
        await place.restarting;
        await serves(place.present);
      }
    };
    await Promise.all([upgrade(servers), upgrade(servers.toReversed())]);
    expect(servers.map(({ running }) => running)).toEqual(["present", "present", "present"]);
    await eventually("the version is raised", () =>
      servers.every(({ present }) => present.output.includes(raised)),
    );
    await judge();
  },
  testMsMax,
);

test.runIf(isThere)(
  "an upgrade that stops half way, with servers killed, is begun anew, and nothing is lost",
  async () => {
    const servers = await formerCluster("halfway");
    const { judge } = await clientsOf(servers);
    const [first, second] = servers;
    await restart(first, "present");
    // The second one is killed while it starts, and so is the first: one of three is there.
    await stopAndStart(second, "present");
    await sleep(300);
    await Promise.all([first, second].map(({ present }) => present.kill()));
    expect(servers.map(({ present }) => present.output).join()).not.toContain(raised);
    for (const { running, ...place } of [first, second]) place[running].start();
    for (const place of servers) await restart(place, "present");
    await eventually("the version is raised", () =>
      servers.every(({ present }) => present.output.includes(raised)),
    );
    await judge();
  },
  testMsMax,
);
