import { append, least } from "leasehold/inner/common/lists.js";
import { joining } from "@leasehold/core/inner/raft/options.js";
import type { MemberId } from "@leasehold/core/inner/raft/types.js";
import type { AutoCompaction } from "@leasehold/core/inner/replica/options.js";
import type {
  ClientRequest,
  ClientResponse,
  Credentials,
  PeerMessage,
  WatchAnswer,
} from "@leasehold/core/inner/replica/types.js";
import { defaultLimits, holdShare } from "@leasehold/core/inner/replica/options.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import type { Comparison } from "@leasehold/core/inner/copies/copies.js";
import type { CoreState } from "@leasehold/core/inner/state/state.js";
import { called, listens } from "./calls.js";
import { checkChanges, checkLeader } from "./changes.js";
import { Connections } from "./connections.js";
import type { WatchRequest, WatchResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { SimRandom } from "../../kit/random.js";
import type { SimEvent } from "../../kit/events.js";
import { SettlingWorld } from "../../kit/settling-world.js";
import { addressOf, descriptionOf, firstServers, type NewCore, type NewServer } from "./cores.js";
import { type CoreCounters, coreCounters } from "./counters.js";
import type { StoredSnapshot } from "./disk.js";
import type { CoreInvariant } from "./invariants.js";
import { lateMsOf, LeaderTime } from "./leader-time.js";
import type { CorePlan } from "./plan.js";
import { Reference } from "./reference.js";
import { type ServerPlan, type ServerWorld, SimServer } from "./server.js";

/** The outcome for a client: an answer, or none. */
export type Outcome = ClientResponse | CoreError | "lost";

/** Applying, reading, watching, cleaning up and comparing each have a share of a turn. */
const kindsOfWork = 5;

/** The allowance beyond a turn's share, the work of 128 operations: a step is not divisible. */
const unitsOfOneCommandMax = 900;

/** After the last fault a leader is found within this time, and stays. */
const settledMs = 15_000;

/**
 * Without faults a write takes at most this share of an election timeout. A follower answers after it has
 * written, so a slower disk is a fault: if a majority needs that disk, the leader steps down.
 */
const calmWriteShare = 0.25;

/** Without faults a removed server learns of its removal within this time. */
const noticeMs = 1_000;

interface Call {
  readonly server: SimServer;
  readonly done: (outcome: Outcome) => void;
}

export interface WatchConnection {
  send(request: WatchRequest): void;
  close(): void;
}

interface OpenWatch {
  readonly server: SimServer;
  readonly heard: (response: WatchResponse) => void;
  readonly lost: () => void;
  /** The arrival time of the last response. Responses keep their order. */
  lastMs: number;
}

interface Deadline {
  readonly timeoutMs?: number | undefined;
  readonly wantsLeader?: boolean;
}

export interface CoreWorldOptions {
  readonly story?: ((line: string) => void) | undefined;
  readonly asserted?: ((invariant: CoreInvariant) => boolean) | undefined;
}

/** Servers of a core, their disks and network, and clients. */
export class CoreWorld extends SettlingWorld<CoreInvariant, CoreCounters> implements ServerWorld {
  readonly plan: CorePlan;
  /** The servers of the present core. */
  readonly servers: SimServer[] = [];
  /** The servers of replaced cores; they may return. */
  readonly former: SimServer[] = [];
  /** For each replacement core: the last revision that it kept. */
  readonly #keptRevisions: number[] = [];
  readonly #replacedListeners: ((state: CoreState, keptRevision: number) => void)[] = [];
  /** Servers on the same side have the same number. */
  readonly side = new Map<MemberId, number>();
  /** Servers whose content a test has changed. */
  readonly tampered = new Set<MemberId>();
  readonly #calls = new Map<number, Call>();
  readonly #watches = new Map<number, OpenWatch>();
  #number = 0;
  readonly #leaderTime = new LeaderTime(this.report, this.counters);
  readonly #slowDisk: number;
  readonly #retired = new Set<SimServer>();
  readonly #connections: Connections | undefined;
  #reference: Reference;

  constructor(plan: CorePlan, random: SimRandom, { story, asserted }: CoreWorldOptions = {}) {
    super({ random, counters: coreCounters(), story, asserted });
    this.plan = plan;
    this.#reference = new Reference(this.report);
    this.#slowDisk = random.below(plan.servers);
    this.#connections = plan.bytesPerMs === undefined ? undefined : new Connections(this);
    for (const server of firstServers(plan.servers)) this.start(this.#add(server));
  }

  get reference(): Reference {
    return this.#reference;
  }

  /** Starts an added member, with an empty disk. */
  join(id: MemberId): void {
    this.log(`${id} joins`);
    const [{ cluster }] = this.servers.map(({ plan }) => plan) as [ServerPlan];
    // The others know the members.
    const founding = this.reference.state.members.all;
    const address = addressOf(this.reference.state.members.get(id), id);
    const disk = { recovered: joining(), snapshot: undefined };
    this.start(this.#add({ id, address, cluster, founding, disk }));
  }

  #add({ founding, id, ...server }: NewServer): SimServer {
    const clockRate = drawRate(this.random, this.plan.clockRateError);
    const offsetMs = this.random.between(0, 1e6);
    const clockMs = () => offsetMs + this.nowMs * clockRate;
    const { plan } = this;
    const space = { autoCompaction: compactionOf(plan), quotaBytes: plan.quotaBytes };
    const isNamed = plan.membershipEveryMs !== undefined || plan.restores !== undefined;
    const told = isNamed ? { founding, self: descriptionOf(id) } : { founding: undefined, self: undefined };
    const holdMs = (plan.holdShare ?? holdShare) * plan.electionTicks * plan.tickMs;
    const clocks = { clockMs, clockRate, clockRateError: plan.clockRateTaken ?? plan.clockRateError, holdMs };
    const added = new SimServer({ ...plan, ...space, ...server, ...told, id, ...clocks }, this);
    this.servers.push(added);
    return added;
  }

  /**
   * Replaces all servers by those of another core, which are not started yet. Clients continue with them
   * without noticing.
   */
  replace({ keptRevision, reference, servers }: NewCore): void {
    for (const server of this.servers) this.crash(server);
    append(this.former, this.servers.splice(0));
    this.side.clear();
    this.#leaderTime.beginAnew();
    this.#keptRevisions.push(keptRevision);
    for (const server of servers) this.#add(server);
    const before = this.#reference;
    this.#reference = reference;
    before.handOver(reference);
    for (const listener of this.#replacedListeners) listener(reference.state, keptRevision);
  }

  whenReplaced(listener: (state: CoreState, keptRevision: number) => void): void {
    this.#replacedListeners.push(listener);
  }

  /** The number of cores so far. */
  get cores(): number {
    return 1 + this.#keptRevisions.length;
  }

  /** The last revision that the present core shares with an earlier one. */
  keptSince(cores: number): number {
    return least([Infinity, ...this.#keptRevisions.slice(cores - 1)]);
  }

  // Time

  /** Runs until `endMs`, or until a violation; without programs that wait for promises. */
  runUntil(endMs: number): void {
    for (let event = this.next(endMs); event !== undefined; event = this.next(endMs)) this.happen(event);
    this.nowMs = Math.max(this.nowMs, endMs);
  }

  /** Runs until `endMs`, or until a violation, with programs that wait for promises. */
  async run(endMs: number): Promise<void> {
    await this.settleUntil(endMs);
    this.nowMs = Math.max(this.nowMs, endMs);
  }

  protected override happen(event: SimEvent): void {
    this.hash.number(this.reference.index);
    this.guard(() => event.run());
  }

  /** A failure detected by a server itself also ends the run. */
  guard(body: () => void): void {
    try {
      body();
    } catch (error) {
      this.#found(error);
    }
  }

  #found(error: unknown): void {
    this.report("agreement", error instanceof Error ? error.message : String(error));
  }

  log(line: string): void {
    this.story?.(line);
  }

  // Servers

  start(server: SimServer): void {
    server.start();
    this.log(`${server.id} starts`);
  }

  crash(server: SimServer): void {
    if (!server.isUp) return;
    this.log(`${server.id} crashes${server.leads ? ", the leader" : ""}`);
    this.counters.crashes += 1;
    server.crash(this.random);
    this.#loseClients(server);
  }

  /**
   * From now on clients avoid removed servers. The processes keep running, and must not disturb. In
   * production such a server ends, even if its log lacks its removal: the members report it when the server
   * dials them.
   */
  retireRemoved(): void {
    const members = this.members();
    for (const server of this.servers) {
      if (members.includes(server) || this.#retired.has(server)) continue;
      this.#retired.add(server);
      this.#loseClients(server);
    }
    // Changes delayed by faults are still to come.
    this.after(noticeMs, () => this.retireRemoved());
  }

  #loseClients(server: SimServer): void {
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
    this.log(`${server.id} stands still for ${forMs.toFixed(0)} ms${server.leads ? ", the leader" : ""}`);
    this.counters.pauses += 1;
    server.standStill(this.plan.suspends === true);
    const { life } = server;
    this.after(forMs, () => {
      if (server.life !== life || !server.isPaused) return;
      this.log(`${server.id} goes on`);
      server.resume(this.random);
    });
  }

  leader(): SimServer | undefined {
    const leaders = this.servers.filter((server) => server.leads);
    return leaders.sort((a, b) => b.replica!.status().term - a.replica!.status().term)[0];
  }

  // Ports of servers

  send(sender: SimServer, message: PeerMessage, snapshot: StoredSnapshot | undefined): boolean {
    // A snapshot has a connection of its own.
    if (this.#connections !== undefined && snapshot === undefined)
      return this.#connections.send(sender, message);
    const isLog = !["propose", "propose-change", "ask", "leader-answer", "leader-refusal"].includes(
      message.kind,
    );
    const copies = isLog && this.random.chance(this.plan.duplicateRate) && snapshot === undefined ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1)
      this.after(this.random.exponential(this.plan.latencyMs) + lateMsOf(message), () =>
        this.#deliver(sender, message, snapshot),
      );
    return true;
  }

  called(sender: SimServer, to: MemberId): SimServer | undefined {
    return called(this, sender, to);
  }

  isParted(from: MemberId, to: MemberId): boolean {
    return (this.side.get(from) ?? 0) !== (this.side.get(to) ?? 0);
  }

  /** From a connection. */
  deliver(receiver: SimServer, sender: SimServer, message: PeerMessage): void {
    if (listens(this, receiver, sender, message.to)) receiver.step({ kind: "message", message });
  }

  cutConnection(): void {
    this.#connections?.cutOne();
  }

  #deliver(sender: SimServer, message: PeerMessage, snapshot: StoredSnapshot | undefined): void {
    const { from, to } = message;
    const receiver = called(this, sender, to);
    const isThere = receiver?.isUp === true && !this.isParted(from, to);
    const arrived = isThere && !this.random.chance(this.plan.lossRate) && listens(this, receiver, sender, to);
    if (arrived) {
      if (message.kind === "snapshot") receiver.receiveSnapshot(message, snapshot!);
      else receiver.step({ kind: "message", message });
    }
    if (message.kind === "snapshot") sender.step({ kind: "snapshot-sent", member: to, arrived });
  }

  /** The servers that are members, as far as the membership is committed. */
  members(): SimServer[] {
    const { all } = this.reference.state.members;
    return all.length === 0
      ? this.servers
      : this.servers.filter(({ id }) => all.some((member) => member.id === id));
  }

  /** Some removed servers stop, as in production; others keep running, as if the notice were late or lost. */
  removed(server: SimServer): void {
    this.log(`${server.id} hears that it was removed`);
    this.counters.removalsHeard += 1;
  }

  writeMs(server: SimServer): number {
    const isSlow = this.servers.indexOf(server) === this.#slowDisk;
    const { calmWriteMs, electionTicks, slowDiskFactor, stableFromMs, tickMs, writeMs } = this.plan;
    const isCalm = this.nowMs >= stableFromMs;
    const meanMs = isCalm ? (calmWriteMs ?? writeMs) : writeMs;
    const drawnMs = this.random.exponential(meanMs * (isSlow ? slowDiskFactor : 1));
    return isCalm ? Math.min(drawnMs, electionTicks * tickMs * calmWriteShare) : drawnMs;
  }

  savesSnapshot(): void {
    this.counters.snapshots += 1;
  }

  failed(server: SimServer, error: unknown): void {
    this.#found(error);
    this.crash(server);
    this.after(this.plan.downMsMax, () => {
      if (!server.isUp) this.start(server);
    });
  }

  compared(server: SimServer, { corrupt, revision, same }: Comparison): void {
    this.counters.comparisons += 1;
    this.counters.sameCopies += same.length - 1;
    const wronged = corrupt.filter((id) => !this.tampered.has(id));
    if (corrupt.length > 0) this.log(`${server.id} finds ${corrupt.join()} corrupt at ${revision}`);
    if (wronged.length > 0) this.report("agreement", `${wronged.join()} counts as corrupt, and is not`);
  }

  trouble({ id }: SimServer, text: string): void {
    this.report("agreement", `${id}: ${text}`);
  }

  leads(server: SimServer): void {
    if (this.former.includes(server)) return;
    this.counters.elections += 1;
    if (this.nowMs > this.plan.stableFromMs + settledMs) this.counters.lateElections += 1;
    checkLeader(this.report, server);
    this.#leaderTime.leads(server);
    this.log(`${server.id} leads in term ${server.replica!.status().term}`);
  }

  stepped(server: SimServer): void {
    if (this.former.includes(server)) return;
    const { requestsLeftBehind } = server.replica!;
    if (requestsLeftBehind > 0)
      this.report("space", `${server.id} keeps ${requestsLeftBehind} requests too many`);
    this.reference.observe(server);
    this.#leaderTime.check(server);
    if (this.plan.membershipEveryMs !== undefined && server.leads) checkChanges(this.report, server);
  }

  worked({ id, plan }: SimServer, units: number): void {
    const { unitsPerTurn } = { ...defaultLimits, ...plan.limits };
    if (units > kindsOfWork * unitsPerTurn + unitsOfOneCommandMax)
      this.report("turn", `${id} has looked at ${units} things in one turn`);
  }

  hasMore(): void {
    this.counters.turnsLeft += 1;
  }

  // Clients

  get #anybody(): Credentials | undefined {
    return this.plan.rights === true ? { kind: "user", user: "root" } : undefined;
  }

  /**
   * @param credentials the user; default: root while this run checks rights
   * @param deadline how long the client waits, and whether it wants to be refused by a server that knows no
   *   leader
   */
  call(
    server: SimServer,
    request: ClientRequest,
    done: (outcome: Outcome) => void,
    credentials: Credentials | undefined = this.#anybody,
    { timeoutMs = this.plan.timeoutMs, wantsLeader = false }: Deadline = {},
  ): void {
    this.#number += 1;
    const number = this.#number;
    const answered = (result: ClientResponse | CoreError) =>
      this.after(this.random.exponential(this.plan.latencyMs), () => {
        if (!this.#calls.delete(number)) return;
        this.#judgePatience(result, request);
        done(result);
      });
    this.after(this.random.exponential(this.plan.latencyMs), () => {
      if (!server.isUp) {
        done(new CoreError("noLeader"));
        return;
      }
      this.#calls.set(number, { server, done });
      server.enter((host) => {
        if (wantsLeader && host.status().leader === 0n) {
          answered(new CoreError("noLeader"));
          return;
        }
        const deadlineMs = server.clockMs() + timeoutMs;
        host.request(`${number}`, request, deadlineMs, answered, credentials);
      }, true);
    });
  }

  /** Without long faults every request has a known outcome. */
  #judgePatience(result: ClientResponse | CoreError, { kind }: ClientRequest): void {
    if (this.plan.allAnswered === true && result instanceof CoreError && result.failure === "timeout")
      this.report("answered", `the outcome of a request (${kind}) is not known`);
  }

  /** Undefined if the server is down. */
  watch(
    server: SimServer,
    heard: (response: WatchResponse) => void,
    lost: () => void,
    credentials: Credentials | undefined = this.#anybody,
  ): WatchConnection | undefined {
    if (!server.isUp || this.#retired.has(server)) return undefined;
    this.#number += 1;
    const number = this.#number;
    this.#watches.set(number, { server, heard, lost, lastMs: this.nowMs });
    let stream = 0;
    server.enter((host) => {
      stream = host.openWatches(`${number}`, (response) =>
        this.watched(server, number, { stream, response }),
      );
    });
    return {
      send: (request) => server.enter((host) => host.watch(stream, request, credentials)),
      close: () => {
        this.#watches.delete(number);
        server.enter((host) => host.closeWatches(stream));
      },
    };
  }

  /** Responses on one connection keep their order, and are lost with their server. */
  watched(server: SimServer, number: number, { stream, response }: WatchAnswer): void {
    const watch = this.#watches.get(number);
    if (watch === undefined) return;
    watch.lastMs = Math.max(watch.lastMs, this.nowMs + this.random.exponential(this.plan.latencyMs));
    this.at(watch.lastMs, () => {
      if (!this.#watches.has(number)) return;
      if (response instanceof CoreError) {
        if (!["notForLearner", "noLeader"].includes(response.failure)) throw response;
        this.#watches.delete(number);
        watch.lost();
        return;
      }
      watch.heard(response);
      server.enter((host) => host.watchSent(stream, 1));
    });
  }
}

/** Draws the rate of a steady clock, a third of them at the bound. */
export function drawRate(random: SimRandom, clockRateError: number): number {
  return 1 + clockRateError * Math.max(-1, Math.min(1, random.between(-1.5, 1.5)));
}

function compactionOf({ keepMs, keepRevisions }: CorePlan): AutoCompaction | undefined {
  if (keepRevisions !== undefined) return { mode: "revision", keepRevisions };
  return keepMs === undefined ? undefined : { mode: "periodic", keepMs };
}
