import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { MemberUpdateRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/cluster_pb.js";
import { freePorts } from "../free-ports.js";
import { mainPath } from "../support/built.js";
import { CoreProcess } from "./support/core-cluster.js";
import { sleep } from "./support/load.js";

/** Servers that move to other addresses while another server is down and does not learn of it. */

const patienceMs = 60_000;
const testMsMax = 300_000;

interface Place {
  readonly name: string;
  readonly client: string;
  peer: string;
}

class Movable implements AsyncDisposable {
  readonly #folder: string;
  readonly #places: readonly Place[];
  readonly #spare: string[];
  readonly servers: CoreProcess[];
  readonly #all: CoreProcess[] = [];

  private constructor(folder: string, places: readonly Place[], spare: string[]) {
    this.#folder = folder;
    this.#places = places;
    this.#spare = spare;
    this.servers = places.map((place) => this.#processAt(place));
  }

  static async start(): Promise<Movable> {
    const folder = await mkdtemp(join(tmpdir(), "lh-move-"));
    const ports = (await freePorts(9)).map((port) => `http://127.0.0.1:${port}`);
    const places = [0, 1, 2].map((index) => ({
      name: `s${index + 1}`,
      client: ports[index]!,
      peer: ports[index + 3]!,
    }));
    const movable = new Movable(folder, places, ports.slice(6));
    for (const server of movable.servers) server.start();
    for (const index of [0, 1, 2]) await movable.serves(index);
    return movable;
  }

  #processAt({ name, client, peer }: Place): CoreProcess {
    const dataDir = join(this.#folder, name);
    // Where the servers are by now: the flags of one that was away say where it finds the others.
    const initial = this.#places.map((place) => `${place.name}=${place.peer}`).join(",");
    const words = ["--name", name, "--data-dir", dataDir, "--initial-cluster", initial];
    words.push("--listen-client-urls", client, "--listen-peer-urls", peer);
    words.push("--initial-advertise-peer-urls", peer);
    const command = [process.execPath, mainPath, "core", ...words];
    const server = new CoreProcess(name, new URL(client).host, dataDir, command);
    this.#all.push(server);
    return server;
  }

  /** Notifies the other members of a server's new address. */
  async agree(asked: number, moving: number, ID: bigint): Promise<void> {
    this.#places[moving]!.peer = this.#spare.shift()!;
    const request = create(MemberUpdateRequestSchema, { ID, peerURLs: [this.#places[moving]!.peer] });
    await this.servers[asked]!.client.call("Cluster", "MemberUpdate", request);
  }

  /** Starts the server at its current address. */
  start(index: number): void {
    this.servers[index] = this.#processAt(this.#places[index]!);
    this.servers[index]!.start();
  }

  kill(index: number): Promise<void> {
    return this.servers[index]!.kill();
  }

  /** Whether a put at this server is answered in time; why not, if it is not. */
  async serves(index: number): Promise<string> {
    const server = this.servers[index]!;
    const endMs = performance.now() + patienceMs;
    for (;;) {
      const said = await server.client.put("k", "v", 2_000).then(
        () => "done",
        (error: unknown) => String(error),
      );
      if (said === "done") return said;
      if (performance.now() > endMs)
        return `${server.name}: ${said}\n${this.servers.map(({ name, output }) => `${name}: ${output}`).join("\n")}`;
      await sleep(200);
    }
  }

  idOf(index: number): Promise<bigint> {
    return this.servers[index]!.client.status().then(({ header }) => header!.memberId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#all) server.client.close();
    await Promise.all(this.#all.map((server) => server.kill()));
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The second server has another address, of which the third, which is away, has not heard. */
async function movedWithoutTheThird(): Promise<Movable> {
  const cluster = await Movable.start();
  const id = await cluster.idOf(1);
  await cluster.kill(2);
  await cluster.agree(0, 1, id);
  await cluster.kill(1);
  cluster.start(1);
  expect(await cluster.serves(1)).toBe("done");
  return cluster;
}

test(
  "a server moves while another one is away, and the two go on without the third",
  async () => {
    await using cluster = await movedWithoutTheThird();
    // There is no member left whose address both know.
    await cluster.kill(0);
    cluster.start(2);
    expect(await cluster.serves(2)).toBe("done");
    expect(await cluster.serves(1)).toBe("done");
    cluster.start(0);
    expect(await cluster.serves(0)).toBe("done");
  },
  testMsMax,
);

test(
  "a server that has moved is killed, and begins after the one that missed it",
  async () => {
    await using cluster = await movedWithoutTheThird();
    await Promise.all([cluster.kill(0), cluster.kill(1)]);
    cluster.start(2);
    await sleep(3_000);
    cluster.start(1);
    expect(await cluster.serves(2)).toBe("done");
    expect(await cluster.serves(1)).toBe("done");
  },
  testMsMax,
);

test(
  "two servers move while one of them is away, and all are killed",
  async () => {
    await using cluster = await Movable.start();
    const ids = await Promise.all([0, 1, 2].map((index) => cluster.idOf(index)));
    await cluster.kill(2);
    await cluster.agree(0, 1, ids[1]!);
    await cluster.kill(1);
    cluster.start(1);
    expect(await cluster.serves(1)).toBe("done");
    await cluster.agree(0, 2, ids[2]!);
    // Also before the one that moves has heard that it was committed.
    await Promise.all([cluster.kill(0), cluster.kill(1)]);
    cluster.start(1);
    cluster.start(2);
    expect(await cluster.serves(2)).toBe("done");
    expect(await cluster.serves(1)).toBe("done");
    cluster.start(0);
    expect(await cluster.serves(0)).toBe("done");
  },
  testMsMax,
);
