import { CoreHost } from "@leasehold/core/inner/host/host.js";
import type { HostPorts, Turn } from "@leasehold/core/inner/host/ports.js";
import type { RaftLimits } from "@leasehold/core/inner/raft/api.js";
import type { Comparison } from "@leasehold/core/inner/copies/copies.js";
import type { InstallSnapshot, MemberId } from "@leasehold/core/inner/raft/types.js";
import type { ServerLogic } from "@leasehold/core/inner/replica/api.js";
import type { AutoCompaction, ReplicaLimits } from "@leasehold/core/inner/replica/options.js";
import { Replica } from "@leasehold/core/inner/replica/replica.js";
import { ListedMembers, type Roll, type SelfDescription } from "@leasehold/core/inner/replica/roll.js";
import type { Input, PeerMessage } from "@leasehold/core/inner/replica/types.js";
import { type CoreMember, newestVersion, oldestVersion } from "@leasehold/core/inner/state/members.js";
import { forgetVersions, versionAtStart } from "./upgrades.js";
import { restoreState, snapshotPieces } from "@leasehold/core/inner/state/snapshot.js";
import { CoreState } from "@leasehold/core/inner/state/state.js";
import type { SimRandom } from "../../kit/random.js";
import { type DiskTiming, type FirstContent, SimDisk, type StoredSnapshot } from "./disk.js";
import type { CoreReport } from "./invariants.js";

/** The parts of the world that a simulated server uses. */
export interface ServerWorld {
  readonly random: SimRandom;
  readonly report: CoreReport;
  readonly servers: readonly SimServer[];
  readonly plan: { readonly upgrades?: boolean | undefined };
  readonly reference: { readonly state: CoreState };
  /** True time. */
  readonly nowMs: number;
  after(delayMs: number, body: () => void): void;
  /** The duration of a write to this server's disk, drawn for each. */
  writeMs(server: SimServer): number;
  /** @returns whether the network accepts it */
  send(sender: SimServer, message: PeerMessage, snapshot: StoredSnapshot | undefined): boolean;
  /** The server has become the leader. */
  leads(server: SimServer): void;
  /** Called after every turn, when its effects have been carried out. */
  stepped(server: SimServer): void;
  /** The amount of work in one turn. */
  worked(server: SimServer, units: number): void;
  /** Some work is left for another turn. */
  hasMore(): void;
  savesSnapshot(): void;
  /** The server has learnt that it was removed. */
  removed(server: SimServer): void;
  /** Its process has ended with an error. */
  failed(server: SimServer, error: unknown): void;
  /** The server has compared the servers' state. */
  compared(server: SimServer, comparison: Comparison): void;
  /** The server continued after an error that must not occur in a simulated world. */
  trouble(server: SimServer, text: string): void;
}

export interface ServerPlan {
  readonly id: MemberId;
  /** Its address. */
  readonly address: string;
  readonly cluster: bigint;
  readonly disk: FirstContent;
  /** Absent: names and addresses are unknown, and the membership stays as it is. */
  readonly founding: readonly CoreMember[] | undefined;
  readonly self: SelfDescription | undefined;
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly clusterTimeMs: number;
  readonly autoCompaction: AutoCompaction | undefined;
  readonly quotaBytes: number | undefined;
  readonly corruptCheckMs?: number | undefined;
  readonly limits: Partial<ReplicaLimits>;
  readonly raftLimits: Partial<RaftLimits>;
  readonly turnMs: number;
  readonly turnsAtOnce: number;
  /** Each life has an election timeout of its own. */
  readonly unequal?: boolean | undefined;
  readonly timersFirst?: boolean | undefined;
  /** Whether it accepts and sends only what `core/server/peers` would. */
  readonly introduced?: boolean | undefined;
  /** Its steady clock, which begins at `offsetMs`. */
  readonly clockMs: () => number;
  /** The assumed bound of the rates of steady clocks. */
  readonly clockRateError: number;
  readonly holdMs: number;
  readonly clockRate: number;
}

/** The election timeouts of servers that differ in them, in the order in which each server uses them. */
const timeoutFactors = [1, 2, 0.5];

/** Events that arrived during a pause. */
interface Arrival {
  readonly body: (host: CoreHost) => void;
  readonly isRequest: boolean;
}

/** A server: host and replica as in production, with a disk that can lose unsynced data. */
export class SimServer {
  readonly plan: ServerPlan;
  readonly #world: ServerWorld;
  readonly disk: SimDisk;
  replica: Replica | undefined;
  #host: CoreHost | undefined;
  /** Counts starts: events of an earlier life are void. */
  life = 0;
  /** Whether the process has read a clock since its last pause. */
  knowsTime = false;
  /** The process is paused: events wait. */
  isPaused = false;
  #arrivals: Arrival[] = [];
  /** Time that its steady clock lost while its machine was suspended. */
  #lostMs = 0;
  #suspendedAtMs: number | undefined;
  /** The host's next turn, if it directly follows the present event. */
  #turn: (() => void) | undefined;
  #isInTurn = false;
  #roll: Roll = { members: [], removed: new Set(), version: oldestVersion };
  /** Its newest protocol version in this life. */
  version = newestVersion;
  /** The version used in its next lives, if a test sets one. */
  nextVersion: number | undefined;
  #listed = new ListedMembers();
  /** The life of each other server that has announced its version. */
  readonly #heard = new Map<MemberId, number>();

  constructor(plan: ServerPlan, world: ServerWorld) {
    this.plan = plan;
    this.#world = world;
    const timing: DiskTiming = {
      after: (delayMs, body) => world.after(delayMs, body),
      writeMs: () => world.writeMs(this),
    };
    this.disk = new SimDisk(plan.disk.recovered, timing);
    this.disk.snapshot = plan.disk.snapshot;
  }

  get id(): MemberId {
    return this.plan.id;
  }

  get isUp(): boolean {
    return this.replica !== undefined;
  }

  get leads(): boolean {
    return this.replica?.status().role === "leader";
  }

  /** The steady clock. */
  clockMs(): number {
    return (this.#suspendedAtMs ?? this.plan.clockMs()) - this.#lostMs;
  }

  /** @param isSuspended whether the whole machine is suspended, with its steady clock */
  standStill(isSuspended: boolean): void {
    this.isPaused = true;
    this.knowsTime = false;
    if (isSuspended) this.#suspendedAtMs = this.plan.clockMs();
  }

  #goOn(): void {
    this.isPaused = false;
    this.#lostMs += this.plan.clockMs() - (this.#suspendedAtMs ?? this.plan.clockMs());
    this.#suspendedAtMs = undefined;
  }

  start(): void {
    const { snapshot, recovered } = this.disk;
    const state = snapshot === undefined ? new CoreState() : this.#restore(snapshot.pieces);
    this.life += 1;
    const { disk: _disk, founding, introduced: _introduced, self, ...plan } = this.plan;
    this.#roll = { members: founding ?? [], removed: new Set(), version: state.version };
    this.version = this.nextVersion ?? versionAtStart(this, this.#world);
    forgetVersions(this, this.#world);
    this.#heard.clear();
    this.#listed = new ListedMembers();
    const described = self === undefined ? {} : { founding: founding ?? [], self };
    const { random } = this.#world;
    const timeouts = this.#timeouts();
    const ways = { checksum, newestVersion: this.version, random };
    const replica = new Replica({ ...plan, ...timeouts, ...described, ...ways, recovered, state });
    this.replica = replica;
    this.#host = new CoreHost({
      ...this.#ports(),
      logic: this.#watched(replica),
      tickMs: this.plan.tickMs,
      leadership: ({ role }) => {
        if (role === "leader") this.#world.leads(this);
      },
      roll: (roll) => {
        this.#roll = roll;
        if (roll.removed.has(this.id)) this.#world.removed(this);
      },
      compared: (comparison) => this.#world.compared(this, comparison),
      failed: (error) => this.#world.failed(this, error),
      trouble: (text) => this.#world.trouble(this, text),
    });
  }

  #timeouts(): { readonly electionTicks: number; readonly holdMs: number } {
    const { electionTicks, holdMs, id, unequal } = this.plan;
    const place = Number(id % BigInt(timeoutFactors.length)) + this.life;
    const factor = unequal === true ? timeoutFactors[place % timeoutFactors.length]! : 1;
    return { electionTicks: Math.round(electionTicks * factor), holdMs: holdMs * factor };
  }

  // Connections as `core/server/peers` makes them

  /** Whether it knows where to send messages for that server. */
  reaches(id: MemberId): boolean {
    return this.plan.introduced !== true || this.#knows(id);
  }

  /** A connection begins: the sender announces its version. */
  meet({ id, life, version }: SimServer): void {
    if (this.#heard.get(id) === life) return;
    this.#heard.set(id, life);
    this.step({ kind: "peer-version", member: id, version });
  }

  /** The members that it reports to others. */
  get members(): readonly CoreMember[] {
    return this.#roll.members;
  }

  /** The servers that it asks for the members: those in its log, and those in its flags. */
  asks(id: MemberId): boolean {
    return [...this.#roll.members, ...(this.plan.founding ?? [])].some((member) => member.id === id);
  }

  /** Adopts the answers of the others. */
  take(lists: readonly (readonly CoreMember[])[]): void {
    this.#listed.take(lists);
  }

  #knows(id: MemberId): boolean {
    return [...this.#roll.members, ...this.#listed.unknownTo(this.#roll)].some((member) => member.id === id);
  }

  /** The process ends, and the power fails. */
  crash(random: SimRandom): void {
    this.replica = undefined;
    this.#host = undefined;
    this.#goOn();
    this.#arrivals = [];
    this.#turn = undefined;
    this.disk.crash(random);
  }

  /** Resumes, with everything that arrived meanwhile. */
  resume(random: SimRandom): void {
    this.#goOn();
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    // Connections are not ordered relative to each other: messages of clients may arrive before those of
    // servers that have elected another leader.
    if (this.plan.timersFirst === true && random.chance(0.5)) this.step({ kind: "tick" });
    if (random.chance(0.5)) arrivals.sort((one, other) => Number(other.isRequest) - Number(one.isRequest));
    for (const { body, isRequest } of arrivals) this.enter(body, isRequest);
    this.step({ kind: "tick" });
  }

  step(input: Input): void {
    this.enter((host) => host.step(input));
  }

  /** A complete snapshot has arrived from the network. */
  receiveSnapshot(message: InstallSnapshot, { pieces }: StoredSnapshot): void {
    this.enter((host) => host.receiveSnapshot(message, pieces, this.#restore(pieces)));
  }

  /** One event of the process: an input for the host, which handles it now or a little later. */
  enter(body: (host: CoreHost) => void, isRequest = false): void {
    if (this.#host === undefined) return;
    if (this.isPaused) {
      this.#arrivals.push({ body, isRequest });
      return;
    }
    body(this.#host);
    const turn = this.#turn;
    this.#turn = undefined;
    if (turn !== undefined) this.#run(turn);
  }

  #run(turn: () => void): void {
    this.#isInTurn = true;
    turn();
    this.#isInTurn = false;
    if (this.isUp) this.#world.stepped(this);
  }

  /** The ports of the host in its present life. */
  #ports(): HostPorts {
    const { life } = this;
    const { turnMs } = this.plan;
    const inLife = (body: () => void) => {
      if (this.life === life) this.enter(body);
    };
    return {
      now: () => ({ monotonicMs: this.clockMs(), wallMs: this.#world.nowMs }),
      every: (periodMs, run) => this.#every(periodMs, run),
      defer: (turn) => {
        if (this.#isInTurn) this.#world.hasMore();
        if (turnMs === 0) this.#turn = turn;
        else
          this.#world.after(this.#world.random.exponential(turnMs), () => inLife(() => (this.#turn = turn)));
      },
      beginTurn: () => new CountedTurn(this.plan.turnsAtOnce),
      disk: {
        persist: (persist, received, done) =>
          this.disk.persist(persist, received, (error) => inLife(() => done(error))),
        saveSnapshot: (snapshot, signal, done) => {
          this.#world.savesSnapshot();
          this.disk.saveSnapshot(snapshot, signal, (error) => inLife(() => done(error)));
        },
      },
      send: (message) => this.#send(message),
    };
  }

  /** Servers tick at different moments. Of the ticks due during a pause only one fires, at its end. */
  #every(periodMs: number, run: () => void): () => void {
    const { life } = this;
    let isOver = false;
    const tick = () => {
      if (isOver || this.life !== life) return;
      if (!this.isPaused) this.enter(run);
      this.#world.after(periodMs / this.plan.clockRate, tick);
    };
    this.#world.after(this.#world.random.between(0, periodMs), tick);
    return () => (isOver = true);
  }

  /** The replica, with a count of its work. */
  #watched(replica: Replica): ServerLogic {
    return {
      step: (input, now) => {
        this.knowsTime = true;
        replica.step(input, now);
      },
      take: () => {
        const { visits } = replica;
        const before = visits.count;
        const effects = replica.take();
        this.#world.worked(this, visits.count - before);
        return effects;
      },
      status: () => replica.status(),
      userOf: (token) => replica.userOf(token),
    };
  }

  /**
   * Readers of snapshots (disks and connections) take pieces up to a certain size. Here it is so small that a
   * few versions fill a piece.
   */
  #restore(pieces: readonly Uint8Array[]): CoreState {
    const { snapshotPieceBytes = Infinity } = this.plan.limits;
    const tooLarge = pieces.find(({ length }) => length > 2 * snapshotPieceBytes);
    if (tooLarge !== undefined)
      this.#world.report("durability", `a snapshot has a piece of ${tooLarge.length} bytes`);
    return restoreState(pieces);
  }

  /**
   * The newest snapshot on disk replaces the one that the log asked for; at first there is an empty state.
   */
  #send(message: PeerMessage): boolean {
    if (message.kind !== "snapshot") return this.#world.send(this, message, undefined);
    const empty = { meta: message.meta, pieces: [...snapshotPieces(new CoreState())] };
    const snapshot = this.disk.snapshot ?? empty;
    return this.#world.send(this, { ...message, meta: snapshot.meta }, snapshot);
  }
}

/** FNV-1a. */
function checksum(bytes: Uint8Array, before: number): number {
  let hash = before ^ 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** A turn with time for this many effects. */
class CountedTurn implements Turn {
  #left: number;

  constructor(count: number) {
    this.#left = count;
  }

  get isOver(): boolean {
    this.#left -= 1;
    return this.#left <= 0;
  }
}
