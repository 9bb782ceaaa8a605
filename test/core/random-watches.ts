import { type MessageInitShape } from "@bufbuild/protobuf";
import type {
  WatchCreateRequestSchema,
  WatchResponse,
} from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { contains, type KeyRange, rangeOf } from "../../packages/core/src/state/keys.js";
import { compact, grant, put, bytes, removeAll, txn } from "../../packages/sim/src/core/world/requests.js";
import type { SimServer } from "../../packages/sim/src/core/world/server.js";
import { SimRandom } from "../../packages/sim/src/kit/random.js";
import { VirtualCluster } from "./virtual-cluster.js";

type CreateRequest = MessageInitShape<typeof WatchCreateRequestSchema>;

const steps = 50;
const putsMax = 60;
/** Streams take nothing by turns: one of so many. */
const phases = 3;

interface Stream {
  readonly connection: ReturnType<VirtualCluster["watch"]>;
  /** In the order in which they were asked for, and are answered. */
  readonly asked: CreateRequest[];
}

interface Told {
  readonly range: KeyRange;
  /** What it has to hear comes from there on. */
  readonly from: number;
  readonly events: string[];
  /** Up to there it was told. */
  last: number;
}

/** The bounds are small, so that each of them is reached. */
const limits = {
  unitsPerTurn: 64,
  watchBatch: 8,
  watchResponsesMax: 3,
  fragmentBytesMax: 500,
  watchBytesTotalMax: 40_000,
};

/** Random clients that write one server's keys and watch them. */
export class RandomWatches {
  readonly #random: SimRandom;
  readonly #cluster: VirtualCluster;
  readonly #server: SimServer;
  readonly #streams = new Set<Stream>();
  /** What streams do not take just now, and who they are. */
  readonly #kept: (() => void)[] = [];
  #phase = phases;
  #lease = 0n;
  /** Leases have been granted that end together. */
  #isEndAwaited = false;

  constructor(seed: number) {
    this.#random = new SimRandom(seed);
    this.#cluster = new VirtualCluster({
      seed,
      servers: 1,
      turnMs: 0.5,
      turnsAtOnce: 1,
      latencyMs: 0.2,
      limits,
    });
    this.#server = this.#cluster.leader();
    const { world } = this.#cluster;
    const { watched } = world;
    world.watched = (server, number, answer) => {
      const take = () => watched.call(world, server, number, answer);
      if (number % phases === this.#phase) this.#kept.push(take);
      else take();
    };
    const { stepped } = world;
    world.stepped = (server) => {
      stepped.call(world, server);
      if (server.replica!.isApplying) this.#withinCommand();
    };
  }

  /** @returns a description of what was wrong */
  run(): string | undefined {
    for (let step = 0; step < steps; step += 1) {
      this.#step();
      this.#cluster.run(this.#random.magnitude(0.2, 300));
    }
    this.#takeIn(phases);
    this.#cluster.run(200);
    // Nothing comes after that for which others would go on.
    const largest = [...this.#streams].sort((one, other) => other.asked.length - one.asked.length)[0];
    if (largest !== undefined) this.#close(largest);
    this.#cluster.run(4_000);
    return this.#judge();
  }

  #step(): void {
    const random = this.#random;
    const doing = random.below(12);
    const [stream] = [...this.#streams].slice(random.below(this.#streams.size + 1));
    if (doing < 3) this.#write();
    else if (doing === 3) this.#removeMany();
    else if (doing === 4) this.#grantMany();
    else if (doing < 7 || stream === undefined) this.#open();
    else if (doing === 7) this.#close(stream);
    else if (doing === 8) this.#ask(stream);
    else if (doing === 9) stream.connection.send({ case: "progressRequest", value: {} });
    else if (doing === 10) this.#takeIn(random.below(phases + 1));
    else this.#cancelOrCompact(stream);
  }

  // Writes

  #write(count = this.#random.pick([1, 1, 20, putsMax])): void {
    const random = this.#random;
    const prefix = random.pick(["a", "b"]);
    const puts = Array.from({ length: count }, (_, index) => ({
      request: {
        case: "requestPut" as const,
        value: { key: bytes(`${prefix}${index}`), value: bytes("x".repeat(20)) },
      },
    }));
    this.#cluster.send(this.#server, txn({ success: puts }));
  }

  #removeMany(): void {
    this.#cluster.send(this.#server, removeAll("a", bytes(this.#random.pick(["b", "c"]))));
  }

  /** They end together. */
  #grantMany(): void {
    for (let count = 0; count < 30; count += 1) {
      this.#lease += 1n;
      this.#cluster.send(this.#server, grant(2, this.#lease));
    }
    this.#cluster.run(20);
    for (let id = this.#lease - 29n; id <= this.#lease; id += 1n)
      this.#cluster.send(this.#server, put(`b/${id}`, "", id));
    this.#cluster.run(50);
    this.#isEndAwaited = true;
  }

  /** Some of them have ended. */
  #withinCommand(): void {
    if (!this.#isEndAwaited) return;
    this.#isEndAwaited = false;
    this.#cluster.world.after(0, () => {
      for (const { connection } of this.#streams) connection.send({ case: "progressRequest", value: {} });
      this.#open();
    });
  }

  // Watches

  #request(): CreateRequest {
    const random = this.#random;
    const { revision } = this.#server.replica!.status();
    const start = random.pick([0, 0, 2, random.below(revision) + 1, revision + random.below(60)]);
    const ranges = [
      { key: bytes("\0"), rangeEnd: bytes("\0") },
      { key: bytes("\0"), rangeEnd: bytes("\0") },
      { key: bytes("a"), rangeEnd: bytes("b") },
      { key: bytes("a1") },
    ];
    return { ...random.pick(ranges), startRevision: BigInt(start), fragment: random.chance(0.2) };
  }

  #open(): void {
    const request = this.#request();
    const stream = { connection: this.#cluster.watch(this.#server, request), asked: [request] };
    this.#streams.add(stream);
    for (let more = this.#random.pick([0, 0, 10]); more > 0; more -= 1) this.#ask(stream);
  }

  #ask(stream: Stream): void {
    const value = this.#request();
    stream.asked.push(value);
    stream.connection.send({ case: "createRequest", value });
  }

  /** In the middle of what it reads. */
  #close(stream: Stream): void {
    this.#write(putsMax);
    this.#cluster.run(this.#random.between(1, 5));
    this.#streams.delete(stream);
    stream.connection.close();
  }

  #cancelOrCompact(stream: Stream): void {
    const { revision } = this.#server.replica!.status();
    if (this.#random.chance(0.3)) this.#cluster.send(this.#server, compact(BigInt(revision >>> 1)));
    else stream.connection.send({ case: "cancelRequest", value: { watchId: 0n } });
  }

  /** Those of another phase take nothing from now on. */
  #takeIn(phase: number): void {
    this.#phase = phase;
    for (const take of this.#kept.splice(0)) take();
  }

  // What they have heard

  #judge(): string | undefined {
    for (const stream of this.#streams) {
      const wrong = this.#judgeStream(stream);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  #judgeStream({ asked, connection }: Stream): string | undefined {
    const open = new Map<bigint, Told>();
    const requests = [...asked];
    for (const response of connection.responses) {
      const { canceled, created, watchId } = response;
      if (created) open.set(watchId, toldOf(requests.shift()!, response));
      const wrong =
        watchId === -1n ? this.#judgeProgress(open, response) : this.#hear(open.get(watchId), response);
      if (wrong !== undefined) return wrong;
      if (canceled) open.delete(watchId);
    }
    for (const told of open.values()) {
      const missing = this.#changes(told, told.last + 1, Infinity);
      if (missing.length > 0) return `heard nothing more after ${told.last}: ${missing.join(" ")}`;
    }
    return undefined;
  }

  #hear(told: Told | undefined, { events, fragment }: WatchResponse): string | undefined {
    if (events.length === 0) return undefined;
    if (told === undefined) return "heard by a watch that is not there";
    for (const { kv } of events) told.events.push(`${new TextDecoder().decode(kv!.key)}@${kv!.modRevision}`);
    if (fragment) return undefined;
    const last = Number(events.at(-1)!.kv!.modRevision);
    const expected = this.#changes(told, told.last + 1, last);
    const heard = told.events.splice(0);
    told.last = Math.max(told.last, last);
    return heard.join() === expected.join()
      ? undefined
      : `heard ${heard.join(" ")}, and not ${expected.join(" ")}`;
  }

  /** A client continues from there. */
  #judgeProgress(open: ReadonlyMap<bigint, Told>, { header }: WatchResponse): string | undefined {
    for (const told of open.values()) {
      const untold = this.#changes(told, told.last + 1, Number(header!.revision));
      if (untold.length > 0) return `progress up to ${header!.revision} without ${untold.join(" ")}`;
    }
    return undefined;
  }

  #changes({ range }: Told, from: number, to: number): string[] {
    return this.#cluster.world.reference.changes
      .filter(({ key, modified }) => modified >= from && modified <= to && contains(range, key))
      .map(({ key, modified }) => `${key}@${modified}`);
  }
}

function toldOf({ key, rangeEnd, startRevision }: CreateRequest, { header }: WatchResponse): Told {
  const range = rangeOf(key!, rangeEnd ?? new Uint8Array());
  const from = Number(startRevision) > 0 ? Number(startRevision) : Number(header!.revision) + 1;
  return { range, from, events: [], last: from - 1 };
}
