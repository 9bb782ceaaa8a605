import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ClientDuplexStream,
  type Client as GrpcClient,
  credentials,
  makeClientConstructor,
} from "@grpc/grpc-js";
import { create } from "@bufbuild/protobuf";
import {
  KV,
  Lease,
  LeaseGrantRequestSchema,
  type LeaseGrantResponse,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  Watch,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { Replica } from "../../packages/core/src/replica/replica.js";
import { configOf, type RunningCore, startCore } from "../../packages/core/src/server/index.js";
import { type Faults, duringFaults } from "./switches.js";
import { silent } from "../../packages/leasehold/src/runtime/logger.js";
import { SimRandom } from "../../packages/sim/src/kit/random.js";
import { bytes, Client } from "../core/support/client.js";
import { freePorts } from "../free-ports.js";
import { type HostileRequest, HostileRequests } from "./hostile-requests.js";

/** A mistake in how a core treats requests, which a hostile client finds. */
export interface Hostile {
  readonly name: string;
  readonly faults: Partial<Faults>;
}

export const hostiles: readonly Hostile[] = [
  { name: "C: each nested transaction has a budget of its own", faults: { budgetOfEachLevel: true } },
  { name: "C: events of a revision are the arguments of one call", faults: { eventsSpread: true } },
  {
    name: "C: an error of one stream spreads",
    faults: { eventsSpread: true, mistakesEscape: true },
  },
];

const requestsPerRun = 40;
const atOnce = 8;
const keysPerRun = 1_100;

/**
 * The most processor time of this process for one `step` or `take` of the replica, ms. Other clients wait
 * meanwhile.
 */
const turnMsMax = 1_500;

/**
 * The longest that the bystander's requests may take on a machine that has other work, too: the turns are
 * what is measured.
 */
const patienceMs = 40_000;

/** The longest that the hostile client waits for an answer. */
const hostileWaitMs = 3_000;

export interface HostileRun {
  readonly seed: number;
  /** The effect on the bystander or the server. */
  readonly found: string | undefined;
}

/** Runs one seed after another until an effect is found or `goOn` ends the search. */
export async function searchHostile(
  faults: Partial<Faults>,
  goOn: (runs: number) => boolean,
): Promise<{ runs: number; failed: HostileRun | undefined }> {
  for (let runs = 0; goOn(runs); runs += 1) {
    const run = await duringFaults(faults, () => runHostile(runs + 1));
    if (run.found !== undefined) return { runs: runs + 1, failed: run };
  }
  return { runs: 0, failed: undefined };
}

/**
 * Runs one server, a hostile client, and a bystander that only uses its keys, its lease and its watch.
 * Nothing that the hostile client does may fail a request of the bystander, end its streams, end the server,
 * keep the server from starting again, or take one turn for longer than the bound.
 */
export async function runHostile(seed: number): Promise<HostileRun> {
  const folder = await mkdtemp(join(tmpdir(), "lh-hostile-"));
  const [port, peerPort] = await freePorts(2);
  const peer = `http://127.0.0.1:${peerPort}`;
  const config = configOf({
    dataDir: folder,
    listenClientUrls: `http://127.0.0.1:${port}`,
    listenPeerUrls: peer,
    initialAdvertisePeerUrls: peer,
    electionTimeout: "500",
  });
  const watch = new TurnWatch();
  let core = await startCore(config, silent);
  const bystander = new Bystander(`127.0.0.1:${port}`);
  try {
    await bystander.begin();
    await attack(seed, `127.0.0.1:${port}`, () => bystander.found ?? watch.found);
    await bystander.end();
    const ended = await endOf(core);
    await core.close();
    let found = ended ?? bystander.found ?? watch.found;
    if (found === undefined) {
      core = await startCore(config, silent);
      const client = new Client(`127.0.0.1:${port}`);
      await client.put("again", "1", patienceMs);
      client.close();
    }
    return { seed, found };
  } catch (error) {
    return { seed, found: (error as Error).message };
  } finally {
    watch.stop();
    bystander.close();
    await core.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function endOf(core: RunningCore): Promise<string | undefined> {
  const goesOn = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 50));
  return Promise.race([core.failed, goesOn]).catch(
    (error: Error) => `the server has ended: ${error.message}`,
  );
}

async function attack(seed: number, endpoint: string, found: () => string | undefined): Promise<void> {
  const random = new SimRandom(seed);
  const requests = new HostileRequests(random);
  const client = new RawClient(endpoint);
  for (let sent = 0; sent < keysPerRun / 128; sent += 1) await client.send(requests.fill());
  let left = requestsPerRun;
  const worker = async () => {
    while (left-- > 0 && found() === undefined) await client.send(requests.next());
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  client.close();
}

/** Sends raw bytes and waits for the call to end. */
class RawClient {
  readonly #clients: readonly GrpcClient[];
  readonly #streams: ClientDuplexStream<Uint8Array, Buffer>[] = [];

  constructor(endpoint: string) {
    this.#clients = [KV, Lease, Watch].map((service) => {
      const methods = service.methods.map(({ name, methodKind }) => [
        name,
        {
          path: `/${service.typeName}/${name}`,
          requestStream: methodKind !== "unary",
          responseStream: methodKind !== "unary",
          requestSerialize: (value: Uint8Array) => Buffer.from(value),
          requestDeserialize: (value: Buffer) => value,
          responseSerialize: (value: Buffer) => value,
          responseDeserialize: (value: Buffer) => value,
        },
      ]);
      const Constructor = makeClientConstructor(Object.fromEntries(methods), service.typeName);
      return new Constructor(endpoint, credentials.createInsecure(), {
        "grpc.max_receive_message_length": -1,
      });
    });
  }

  send({ method, bytes: content }: HostileRequest): Promise<void> {
    const client = this.#clients.find((each) => method in each) as unknown as Record<
      string,
      CallableFunction
    >;
    if (method === "Watch") {
      const stream = (client[method] as () => ClientDuplexStream<Uint8Array, Buffer>).call(client);
      // Reads the first answer, and then nothing more.
      stream.once("data", () => stream.pause());
      stream.on("error", () => undefined);
      stream.write(content);
      this.#streams.push(stream);
      return new Promise((resolve) => setTimeout(resolve, 5));
    }
    return new Promise((resolve) => {
      client[method]!(content, { deadline: Date.now() + hostileWaitMs }, () => resolve());
    });
  }

  close(): void {
    for (const stream of this.#streams) stream.cancel();
    for (const client of this.#clients) client.close();
  }
}

/** A well-behaved client. */
class Bystander {
  readonly #client: Client;
  #isOver = false;
  #isEnding = false;
  #working: Promise<void> = Promise.resolve();
  found: string | undefined;

  constructor(endpoint: string) {
    this.#client = new Client(endpoint);
  }

  async begin(): Promise<void> {
    await this.#client.put("mine", "0", patienceMs);
    const grant = create(LeaseGrantRequestSchema, { ID: 77n, TTL: 60n });
    await this.#client.call<LeaseGrantResponse>("Lease", "LeaseGrant", grant, patienceMs);
    const watch = this.#client.stream<WatchRequest, WatchResponse>("Watch", "Watch");
    // Watches all keys, as it may, including the hostile client's.
    const value = { key: bytes("a"), rangeEnd: Uint8Array.of(0) } as never;
    watch.write(create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } }));
    const refresh = this.#client.stream<unknown, LeaseKeepAliveResponse>("Lease", "LeaseKeepAlive");
    refresh.on("data", ({ TTL }: LeaseKeepAliveResponse) => {
      if (TTL !== 60n) this.#say(`its lease has ${TTL} s`);
    });
    watch.on("data", () => undefined);
    for (const [what, stream] of Object.entries({ watch, refresh }))
      stream.on("error", (error: Error) => this.#say(`its stream of ${what} has ended: ${error.message}`));
    this.#working = this.#work(() => refresh.write(create(LeaseKeepAliveRequestSchema, { ID: 77n })));
  }

  async #work(refresh: () => void): Promise<void> {
    for (let count = 1; !this.#isEnding && this.found === undefined; count += 1) {
      try {
        refresh();
        await this.#client.put("mine", `${count}`, patienceMs);
        const read = await this.#client.get("mine", patienceMs);
        if (read !== `${count}`) this.#say(`it has written ${count} and read ${read}`);
      } catch (error) {
        this.#say(`its request has failed: ${(error as Error).message}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  #say(what: string): void {
    if (!this.#isOver) this.found ??= what;
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#working;
    this.#isOver = true;
  }

  close(): void {
    this.#isEnding = true;
    this.#isOver = true;
    this.#client.close();
  }
}

/**
 * Measures turns of the server's logic in processor time, which other processes on the machine don't use up.
 */
class TurnWatch {
  readonly #step = Replica.prototype.step;
  readonly #take = Replica.prototype.take;
  found: string | undefined;

  constructor() {
    const [step, take] = [this.#step, this.#take];
    const timed = <Result>(what: () => string, body: () => Result): Result => {
      const before = process.cpuUsage();
      const result = body();
      const { user, system } = process.cpuUsage(before);
      const ms = (user + system) / 1_000;
      if (ms > turnMsMax) this.found ??= `${what()} took ${ms.toFixed(0)} ms`;
      return result;
    };
    Replica.prototype.step = function (...given) {
      return timed(
        () => `the input ${given[0].kind}`,
        () => step.apply(this, given),
      );
    };
    Replica.prototype.take = function () {
      return timed(
        () => "a turn",
        () => take.call(this),
      );
    };
  }

  stop(): void {
    Replica.prototype.step = this.#step;
    Replica.prototype.take = this.#take;
  }
}
