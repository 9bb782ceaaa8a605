import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type HashKVResponse,
  type MemberAddResponse,
  MemberAddRequestSchema,
  type MemberListResponse,
  MemberListRequestSchema,
  MemberRemoveRequestSchema,
  HashKVRequestSchema,
} from "../../packages/leasehold/src/etcd/gen/etcd/cluster_pb.js";
import { RangeRequestSchema, type RangeResponse } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";
import { report } from "../stores/support.js";
import { CoreProcess } from "./support/core-cluster.js";
import { Load, sleep } from "./support/load.js";

/**
 * Servers that join and leave, as processes, while clients write. A linearizability checker judges what the
 * clients saw.
 */

const run = promisify(execFile);
const waitMsMax = 20_000;

let folder: string;
let all: CoreProcess[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lh-members-"));
  all = [];
});
afterEach(async () => {
  for (const server of all) server.client.close();
  await Promise.all(all.map((server) => server.kill()));
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
});

async function eventually<Result>(
  what: string,
  look: () => Promise<Result | undefined | false>,
): Promise<Result> {
  const endMs = performance.now() + waitMsMax;
  let last = "";
  while (performance.now() < endMs) {
    const found = await look().catch((error: unknown) => void (last = String(error)));
    if (found !== undefined && found !== false) return found;
    await sleep(50);
  }
  throw new Error(
    `${what}: not in time (${last})\n${all.map(({ name, output }) => `${name}: ${output.slice(-600)}`).join("\n")}`,
  );
}

interface Place {
  readonly name: string;
  readonly client: string;
  readonly peer: string;
}

async function newPlace(): Promise<Place> {
  const [client, peer] = await freePorts(2);
  return { name: `s${all.length + 1}`, client: `127.0.0.1:${client}`, peer: `http://127.0.0.1:${peer}` };
}

function processAt({ name, client, peer }: Place, initial: string, more: readonly string[]): CoreProcess {
  const words = ["--name", name, "--data-dir", join(folder, name), "--initial-cluster", initial];
  words.push("--listen-client-urls", `http://${client}`, "--listen-peer-urls", peer);
  words.push("--initial-advertise-peer-urls", peer, "--snapshot-count", "200", ...more);
  const server = new CoreProcess(name, client, join(folder, name), [
    process.execPath,
    mainPath,
    "core",
    ...words,
  ]);
  all.push(server);
  return server;
}

const isReady = (server: CoreProcess) => async () =>
  (await server.client.range("ready", 1_000)) !== undefined;

/** The running cluster: clients ask its servers one after another. */
class Grown {
  readonly servers: CoreProcess[] = [];
  readonly #places = new Map<CoreProcess, Place>();
  readonly #learners = new Map<CoreProcess, Place>();

  async begin(): Promise<void> {
    const place = await newPlace();
    const server = processAt(place, `${place.name}=${place.peer}`, []);
    server.start();
    await eventually("the first server is ready", isReady(server));
    this.#take(server, place);
  }

  #take(server: CoreProcess, place: Place): void {
    this.servers.push(server);
    this.#places.set(server, place);
  }

  /** The server at that place, whose flags name it and the servers that there are. */
  #joining(place: Place): CoreProcess {
    const known = [...this.#places.values(), place].map(({ name, peer }) => `${name}=${peer}`).join(",");
    return processAt(place, known, ["--initial-cluster-state", "existing"]);
  }

  get #up(): CoreProcess {
    return this.servers.find(({ isRunning }) => isRunning)!;
  }

  async add(isLearner = false): Promise<CoreProcess> {
    const place = await newPlace();
    const request = create(MemberAddRequestSchema, { peerURLs: [place.peer], isLearner });
    const { member } = await eventually("a server is added", () =>
      this.#up.client.call<MemberAddResponse>("Cluster", "MemberAdd", request, 8_000),
    );
    const server = this.#joining(place);
    server.start();
    await eventually("the new server takes part", async () => {
      const status = await server.client.status(500);
      const isThere = status.header?.memberId === member!.ID && status.leader !== 0n;
      return isThere && status.isLearner === isLearner;
    });
    if (isLearner) {
      this.#learners.set(server, place);
      return server;
    }
    await eventually("the new server is ready", isReady(server));
    this.#take(server, place);
    return server;
  }

  /** Starts a learner's directory with flags that name the servers of now. */
  startAgain(learner: CoreProcess): CoreProcess {
    const server = this.#joining(this.#learners.get(learner)!);
    server.start();
    return server;
  }

  async remove(server: CoreProcess): Promise<void> {
    const { peer } = this.#places.get(server)!;
    const other = this.servers.find((each) => each !== server && each.isRunning)!;
    await eventually(`${server.name} is removed`, async () => {
      const listed = create(MemberListRequestSchema, { linearizable: true });
      const { members } = await other.client.call<MemberListResponse>("Cluster", "MemberList", listed, 3_000);
      const found = members.find(({ peerURLs }) => peerURLs.includes(peer));
      if (found === undefined) return true;
      const request = create(MemberRemoveRequestSchema, { ID: found.ID });
      await other.client.call("Cluster", "MemberRemove", request, 8_000);
      return true;
    });
    this.servers.splice(this.servers.indexOf(server), 1);
    this.#places.delete(server);
  }

  leader(): Promise<CoreProcess> {
    return eventually("somebody leads", async () => {
      for (const server of this.servers.filter(({ isRunning }) => isRunning)) {
        const status = await server.client.status(500).catch(() => undefined);
        if (status !== undefined && status.leader === status.header?.memberId) return server;
      }
      return undefined;
    });
  }
}

async function hashAt(server: CoreProcess, revision: bigint): Promise<string> {
  const request = create(HashKVRequestSchema, { revision });
  const { hash, compactRevision } = await server.client.call<HashKVResponse>(
    "Maintenance",
    "HashKV",
    request,
  );
  return `${hash} ${compactRevision}`;
}

async function expectSameHashes(servers: readonly CoreProcess[]): Promise<void> {
  await eventually("all have the same hash", async () => {
    const { header } = await servers[0]!.client.range("ready");
    const hashes = await Promise.all(servers.map((server) => hashAt(server, header!.revision)));
    return new Set(hashes).size === 1;
  });
}

test("a core grows from one server to five and back under load, some killed with SIGKILL, and loses nothing", async () => {
  const core = new Grown();
  await core.begin();
  const value = "x".repeat(4_000);
  for (let number = 0; number < 600; number += 100)
    await Promise.all(
      Array.from({ length: 100 }, (_, index) => core.servers[0]!.client.put(`big${number + index}`, value)),
    );
  const load = new Load(core.servers, 8, 4);
  await core.add();
  await core.add();
  const first = await core.leader();
  await first.kill();
  await core.leader();
  first.start();
  await eventually("the killed leader is back", isReady(first));
  await core.add();
  await core.add();
  await expectSameHashes(core.servers);
  const leader = await core.leader();
  const dead = core.servers.find((server) => server !== leader)!;
  await dead.kill();
  await core.remove(dead);
  dead.start();
  expect(await dead.ended()).toBe(77);
  expect(dead.output).toContain("was removed from the core");
  const replacement = await core.add();
  await expectSameHashes(core.servers);
  const killed = await core.leader();
  await killed.kill();
  await core.leader();
  await core.remove(killed);
  for (const server of core.servers.filter((each) => each !== replacement)) {
    await core.remove(server);
    expect(await server.ended()).toBe(77);
  }
  await eventually("the last server is ready", isReady(replacement));
  await load.end();
  expect(core.servers).toEqual([replacement]);
  expect(load.judge()).toBe("linearizable");
  expect(load.acknowledgedMs.length).toBeGreaterThan(200);
  expect(await replacement.client.get("big599")).toBe(value);
  report(
    `1 to 5 and back: ${load.history.length} operations, ${load.failures} failed, longest gap in writes ${Math.round(load.gapMs())} ms`,
  );
});

test("a learner that was down while all whom it knew were replaced finds those that its flags name", async () => {
  const core = new Grown();
  await core.begin();
  const [first] = core.servers as [CoreProcess];
  const learner = await core.add(true);
  await learner.kill();
  const second = await core.add();
  await core.remove(first);
  expect(await first.ended()).toBe(77);
  await eventually("the new server leads", () => second.client.put("late", "1", 1_000));
  const again = core.startAgain(learner);
  const request = create(RangeRequestSchema, { key: Buffer.from("late"), serializable: true });
  const found = await eventually("the learner has caught up", async () => {
    const { count } = await again.client.call<RangeResponse>("KV", "Range", request, 1_000);
    return count > 0n;
  });
  expect(found).toBe(true);
});

test("a server that lost its directory does not come back under its old id", async () => {
  const core = new Grown();
  await core.begin();
  const second = await core.add();
  await core.add();
  await second.kill();
  await rm(second.dataDir, { recursive: true });
  second.start();
  expect(await second.ended()).toBe(2);
  expect(second.output).toContain("has started before, with another data directory");
  await eventually("the others go on", () => core.servers[0]!.client.put("k", "v", 1_000));
});

test("a backup that was taken under load is restored on three servers, which agree; one of them goes on alone", async () => {
  const core = new Grown();
  await core.begin();
  const load = new Load(core.servers, 4, 4);
  await sleep(500);
  const file = join(folder, "backup.db");
  const endpoints = `--endpoints=${core.servers[0]!.endpoint}`;
  await run("etcdctl", [endpoints, "snapshot", "save", file], { env: { ...process.env, ETCDCTL_API: "3" } });
  await sleep(300);
  await load.end();
  const node = (...words: string[]) => run(process.execPath, [mainPath, "core", ...words]);
  const { stdout } = await node("snapshot", "status", file, "--output", "json");
  const { revision } = JSON.parse(stdout) as { revision: number };
  const before = await hashAt(core.servers[0]!, BigInt(revision));
  const places: Place[] = [];
  for (const name of ["r1", "r2", "r3"]) places.push({ ...(await newPlace()), name });
  const initial = places.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const servers = places.map((place) => processAt(place, initial, []));
  for (const [index, { name, peer }] of places.entries()) {
    const words = ["--name", name, "--data-dir", servers[index]!.dataDir, "--initial-cluster", initial];
    await node("restore", file, ...words, "--initial-advertise-peer-urls", peer);
    servers[index]!.start();
  }
  for (const server of servers) await eventually("a restored server is ready", isReady(server));
  for (const server of servers) expect(await hashAt(server, BigInt(revision))).toBe(before);
  await Promise.all(servers.map((server) => server.kill()));
  const alone = processAt(places[0]!, initial, ["--force-new-cluster"]);
  alone.start();
  await eventually("it goes on alone", async () => {
    await alone.client.put("alone", "yes", 1_000);
    return true;
  });
  expect(alone.output).toContain("only one of a new core");
  expect(await hashAt(alone, BigInt(revision))).toBe(before);
});

test("a request that etcd refuses is refused in its words", async () => {
  const core = new Grown();
  await core.begin();
  const { client } = core.servers[0]!;
  const refused = (method: string, request: unknown) =>
    client.call("Cluster", method, request).catch(({ details }: ServiceError) => details);
  const add = create(MemberAddRequestSchema, { peerURLs: ["http://127.0.0.1:1"], isLearner: true });
  await client.call("Cluster", "MemberAdd", add);
  expect(await refused("MemberAdd", add)).toBe("etcdserver: Peer URLs already exists");
  const other = create(MemberAddRequestSchema, { peerURLs: ["http://127.0.0.1:2"], isLearner: true });
  expect(await refused("MemberAdd", other)).toBe("etcdserver: too many learner members in cluster");
  const unknown = create(MemberRemoveRequestSchema, { ID: 5n });
  expect(await refused("MemberRemove", unknown)).toBe("etcdserver: member not found");
});
