import type { MemberId } from "../../src/core/raft/types.js";
import type { AutoCompaction } from "../../src/core/replica/options.js";
import type {
  ClientRequest,
  ClientResponse,
  PeerMessage,
  WatchAnswer,
} from "../../src/core/replica/types.js";
import { defaultLimits } from "../../src/core/replica/options.js";
import { CoreError } from "../../src/core/state/errors.js";
import type { WatchRequest, WatchResponse } from "../../src/core/gen/etcd/rpc_pb.js";
import type { SimRandom } from "../kit/random.js";
import { SimWorld } from "../kit/world.js";
import { type CoreCounters, coreCounters } from "./counters.js";
import type { StoredSnapshot } from "./disk.js";
import type { CoreInvariant } from "./invariants.js";
import type { CorePlan } from "./plan.js";
import { Reference } from "./reference.js";
import { type ServerWorld, SimServer } from "./server.js";

/** What a client learns: an answer, or that it will learn nothing. */
export type Outcome = ClientResponse | CoreError | "lost";

/** Between two turns of one server, mean. */
const turnMs = 0.5;

/** Applying, reading, watching, cleaning up: each has its share of a turn. */
const kindsOfWork = 4;

/** Beyond it, as the smallest steps are not nothing: what 128 operations look at. */
const unitsOfOneCommandMax = 900;

interface Call {
  readonly server: SimServer;
  readonly life: number;
  readonly done: (outcome: Outcome) => void;
}

export interface WatchConnection {
  send(request: WatchRequest): void;
  close(): void;
}

interface OpenWatch {
  readonly server: SimServer;
  readonly life: number;
  readonly heard: (response: WatchResponse) => void;
  readonly lost: () => void;
  /** When the last response arrives: they keep their order. */
  lastMs: number;
}

export interface CoreWorldOptions {
  readonly story?: ((line: string) => void) | undefined;
  readonly asserted?: ((invariant: CoreInvariant) => boolean) | undefined;
}

/** Servers of a core, their disks and network, and clients. */
export class CoreWorld extends SimWorld<CoreInvariant, CoreCounters> implements ServerWorld {
  readonly plan: CorePlan;
  readonly reference: Reference;
  readonly servers: SimServer[] = [];
  /** Servers that hear each other have the same number. */
  readonly side = new Map<MemberId, number>();
  readonly #calls = new Map<number, Call>();
  readonly #watches = new Map<number, OpenWatch>();
  #number = 0;
  readonly #slowDisk: number;

  constructor(plan: CorePlan, random: SimRandom, { story, asserted }: CoreWorldOptions = {}) {
    super({ random, counters: coreCounters(), story, asserted });
    this.plan = plan;
    this.reference = new Reference(this.report);
    this.#slowDisk = random.below(plan.servers);
    const voters = Array.from({ length: plan.servers }, (_, index) => BigInt(index + 1));
    for (const id of voters) this.#add(id, voters);
  }

  #add(id: MemberId, voters: readonly MemberId[]): void {
    const { clusterTimeMs, clockRateError, electionTicks, limits, quotaBytes, raftLimits, tickMs } =
      this.plan;
    const { turnsAtOnce } = this.plan;
    const rate = drawRate(this.random, clockRateError);
    const offsetMs = this.random.between(0, 1e6);
    const clockMs = () => offsetMs + this.nowMs * rate;
    const common = {
      voters,
      cluster: 77n,
      tickMs,
      electionTicks,
      clusterTimeMs,
      limits,
      raftLimits,
      turnsAtOnce,
    };
    const space = { autoCompaction: compactionOf(this.plan), quotaBytes };
    const server = new SimServer({ ...common, ...space, id, random: this.random, clockMs }, this);
    this.servers.push(server);
    this.start(server);
    const tick = () => {
      server.step({ kind: "tick" });
      this.after(tickMs / rate, tick);
    };
    this.after(this.random.between(0, tickMs), tick);
  }

  // Time

  /** Until then, or until something is found that must not be. */
  runUntil(endMs: number): void {
    for (let event = this.next(endMs); event !== undefined; event = this.next(endMs)) {
      this.hash.number(this.reference.index);
      this.guard(() => event.run());
    }
    this.nowMs = Math.max(this.nowMs, endMs);
  }

  /** What a server notices of itself ends the run, too. */
  guard(body: () => void): void {
    try {
      body();
    } catch (error) {
      this.report("agreement", error instanceof Error ? error.message : String(error));
    }
  }

  say(line: string): void {
    this.story?.(line);
  }

  // Servers

  start(server: SimServer): void {
    server.start();
    this.say(`${server.id} starts`);
  }

  crash(server: SimServer): void {
    if (!server.isUp) return;
    this.say(`${server.id} crashes${server.leads ? ", the leader" : ""}`);
    this.counters.crashes += 1;
    server.crash(this.random);
    for (const [number, call] of this.#calls)
      if (call.server === server) {
        this.#calls.delete(number);
        call.done("lost");
      }
    for (const [number, watch] of this.#watches)
      if (watch.server === server) {
        this.#watches.delete(number);
        watch.lost();
      }
  }

  pause(server: SimServer, forMs: number): void {
    if (!server.isUp || server.isPaused) return;
    this.say(`${server.id} stands still for ${forMs.toFixed(0)} ms${server.leads ? ", the leader" : ""}`);
    this.counters.pauses += 1;
    server.isPaused = true;
    const { life } = server;
    this.after(forMs, () => {
      if (server.life !== life || !server.isPaused) return;
      this.say(`${server.id} goes on`);
      server.resume(this.random);
    });
  }

  leader(): SimServer | undefined {
    const leaders = this.servers.filter((server) => server.leads);
    return leaders.sort((a, b) => b.replica!.status().term - a.replica!.status().term)[0];
  }

  // What servers need

  send(message: PeerMessage, snapshot: StoredSnapshot | undefined): void {
    const isLog = !["propose", "ask", "told", "refused"].includes(message.kind);
    const copies = isLog && this.random.chance(this.plan.duplicateRate) && snapshot === undefined ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1)
      this.after(this.random.exponential(this.plan.latencyMs), () => this.#deliver(message, snapshot));
  }

  #deliver(message: PeerMessage, snapshot: StoredSnapshot | undefined): void {
    const { from, to } = message;
    const receiver = this.#server(to);
    const isParted = (this.side.get(from) ?? 0) !== (this.side.get(to) ?? 0);
    const arrived = receiver.isUp && !isParted && !this.random.chance(this.plan.lossRate);
    if (arrived) {
      if (message.kind === "snapshot") receiver.receiveSnapshot(message, snapshot!);
      else receiver.step({ kind: "message", message });
    }
    if (message.kind === "snapshot") this.#server(from).step({ kind: "snapshot-sent", member: to, arrived });
  }

  #server(id: MemberId): SimServer {
    return this.servers.find((server) => server.id === id)!;
  }

  writing(server: SimServer): void {
    const { life } = server;
    const isSlow = this.servers.indexOf(server) === this.#slowDisk;
    const meanMs = this.plan.writeMs * (isSlow ? this.plan.slowDiskFactor : 1);
    this.after(this.random.exponential(meanMs), () => {
      if (server.life === life && server.isUp) server.finishWrite();
    });
  }

  writingSnapshot(server: SimServer): void {
    const { life } = server;
    this.counters.snapshots += 1;
    this.after(this.random.exponential(20 * this.plan.writeMs), () => {
      if (server.life === life && server.isUp) server.finishSnapshot();
    });
  }

  answered(server: SimServer, { id, result }: { id: number; result: ClientResponse | CoreError }): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.life !== server.life) return;
    this.after(this.random.exponential(this.plan.latencyMs), () => {
      if (this.#calls.delete(id)) call.done(result);
    });
  }

  watched(server: SimServer, { stream, response }: WatchAnswer): void {
    const watch = this.#watches.get(stream);
    if (watch === undefined) return;
    const { life } = server;
    watch.lastMs = Math.max(watch.lastMs, this.nowMs + this.random.exponential(this.plan.latencyMs));
    this.at(watch.lastMs, () => this.#hear(server, life, stream, response));
  }

  #hear(server: SimServer, life: number, stream: number, response: WatchAnswer["response"]): void {
    const watch = this.#watches.get(stream);
    if (watch === undefined || server.life !== life) return;
    if (response instanceof CoreError) throw response;
    watch.heard(response);
    server.step({ kind: "watch-sent", stream, responses: 1 });
  }

  leads(server: SimServer): void {
    this.counters.elections += 1;
    this.say(`${server.id} leads in term ${server.replica!.status().term}`);
  }

  stepped(server: SimServer): void {
    const { requestsLeftBehind } = server.replica!;
    if (requestsLeftBehind > 0)
      this.report("space", `${server.id} keeps ${requestsLeftBehind} requests too many`);
    this.reference.observe(server);
  }

  worked({ id, plan }: SimServer, units: number): void {
    const { unitsPerTurn } = { ...defaultLimits, ...plan.limits };
    if (units > kindsOfWork * unitsPerTurn + unitsOfOneCommandMax)
      this.report("turn", `${id} has looked at ${units} things in one turn`);
  }

  hasMore(server: SimServer): void {
    const { life } = server;
    this.counters.turnsLeft += 1;
    this.after(this.random.exponential(turnMs), () => {
      if (server.life === life) server.goOn();
    });
  }

  // Clients

  call(server: SimServer, request: ClientRequest, done: (outcome: Outcome) => void): void {
    this.#number += 1;
    const number = this.#number;
    const delayMs = this.random.exponential(this.plan.latencyMs);
    this.after(delayMs, () => {
      if (!server.isUp) {
        done(new CoreError("noLeader"));
        return;
      }
      this.#calls.set(number, { server, life: server.life, done });
      const deadlineMs = server.plan.clockMs() + this.plan.timeoutMs;
      server.step({ kind: "request", id: number, client: `${number}`, request, deadlineMs });
    });
  }

  /** Undefined if the server is down. */
  watch(
    server: SimServer,
    heard: (response: WatchResponse) => void,
    lost: () => void,
  ): WatchConnection | undefined {
    if (!server.isUp) return undefined;
    this.#number += 1;
    const stream = this.#number;
    this.#watches.set(stream, { server, life: server.life, heard, lost, lastMs: this.nowMs });
    return {
      send: (request) => server.step({ kind: "watch", stream, request }),
      close: () => {
        this.#watches.delete(stream);
        server.step({ kind: "watch-closed", stream });
      },
    };
  }
}

/** Of a steady clock, a third of them as far off as may be. */
export function drawRate(random: SimRandom, clockRateError: number): number {
  return 1 + clockRateError * Math.max(-1, Math.min(1, random.between(-1.5, 1.5)));
}

function compactionOf({ keepMs, keepRevisions }: CorePlan): AutoCompaction | undefined {
  if (keepRevisions !== undefined) return { mode: "revision", keepRevisions };
  return keepMs === undefined ? undefined : { mode: "periodic", keepMs };
}
