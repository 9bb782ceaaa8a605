import { faults } from "#core-faults";
import type { RaftLimits } from "../../src/core/raft/api.js";
import { founding, joining } from "../../src/core/raft/options.js";
import type { InstallSnapshot, MemberId } from "../../src/core/raft/types.js";
import type { AutoCompaction, ReplicaLimits } from "../../src/core/replica/options.js";
import { Replica } from "../../src/core/replica/replica.js";
import type { Answer, Effects, Input, PeerMessage, WatchAnswer } from "../../src/core/replica/types.js";
import { restoreState, snapshotPieces } from "../../src/core/state/snapshot.js";
import { CoreState } from "../../src/core/state/state.js";
import type { Random } from "../../src/lease/ports.js";
import type { SimRandom } from "../kit/random.js";
import { type PendingWrite, SimDisk, type StoredSnapshot } from "./disk.js";
import type { CoreReport } from "./invariants.js";
import { greatest } from "../../src/lease/lists.js";

/** What a simulated server needs from its world. */
export interface ServerWorld {
  readonly report: CoreReport;
  send(message: PeerMessage, snapshot: StoredSnapshot | undefined): void;
  answered(server: SimServer, answer: Answer): void;
  watched(server: SimServer, answer: WatchAnswer): void;
  /** A write has begun; `finishWrite` ends the oldest. */
  writing(server: SimServer): void;
  /** A snapshot is being written; `finishSnapshot` ends it. */
  writingSnapshot(server: SimServer): void;
  /** It leads from now on. */
  leads(server: SimServer): void;
  /** After every input, when its effects have been carried out. */
  stepped(server: SimServer): void;
  /** It has looked at so many things in one turn. */
  worked(server: SimServer, units: number): void;
  /** There is more to do in another turn: `goOn` does it. */
  hasMore(server: SimServer): void;
}

export interface ServerPlan {
  readonly id: MemberId;
  readonly voters: readonly MemberId[];
  readonly cluster: bigint;
  readonly tickMs: number;
  readonly electionTicks: number;
  readonly clusterTimeMs: number;
  readonly autoCompaction: AutoCompaction | undefined;
  readonly quotaBytes: number | undefined;
  readonly limits: Partial<ReplicaLimits>;
  readonly raftLimits: Partial<RaftLimits>;
  readonly turnsAtOnce: number;
  readonly random: Random;
  /** Its steady clock. */
  readonly clockMs: () => number;
}

/** Messages wait behind the writes that they must not overtake. */
type Queued = PendingWrite | { readonly messages: readonly PeerMessage[] };

/** A server: the replica that would run in production, on a disk that can lose what was not synced. */
export class SimServer {
  readonly plan: ServerPlan;
  readonly #world: ServerWorld;
  readonly disk: SimDisk;
  replica: Replica | undefined;
  /** How often it has begun: what belongs to an earlier life is void. */
  life = 0;
  #queue: Queued[] = [];
  #snapshot: StoredSnapshot | undefined;
  /** The process stands still: what comes waits. */
  isPaused = false;
  readonly #arrived = new Map<number, readonly Uint8Array[]>();
  #isTaking = false;
  #hasMore = false;
  readonly #inputs: Input[] = [];

  constructor(plan: ServerPlan, world: ServerWorld) {
    this.plan = plan;
    this.#world = world;
    this.disk = new SimDisk(plan.voters.includes(plan.id) ? founding(plan.voters) : joining());
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

  start(): void {
    const { snapshot, recovered } = this.disk;
    const { id, cluster, tickMs, electionTicks, clusterTimeMs, limits, raftLimits, random } = this.plan;
    const { autoCompaction, quotaBytes } = this.plan;
    const state = snapshot === undefined ? new CoreState() : this.#restore(snapshot.pieces);
    this.life += 1;
    this.replica = new Replica({
      id,
      cluster,
      recovered,
      state,
      random,
      tickMs,
      electionTicks,
      clusterTimeMs,
      autoCompaction,
      quotaBytes,
      limits,
      raftLimits,
    });
  }

  /** The process ends, and the power fails: what was being written is lost, or a part of it. */
  crash(random: SimRandom): void {
    this.replica = undefined;
    this.isPaused = false;
    const write = this.#queue.find((queued) => "persist" in queued);
    if (write !== undefined && random.chance(0.5)) this.disk.tear(write, random);
    this.#queue = [];
    this.#snapshot = undefined;
    this.#arrived.clear();
    this.#inputs.length = 0;
    this.#hasMore = false;
  }

  /** It goes on where it stood, with all that has come meanwhile. */
  resume(random: SimRandom): void {
    this.isPaused = false;
    // Connections have no order among them: clients may be heard before the servers that have elected another leader.
    if (random.chance(0.5))
      this.#inputs.sort((one, other) => Number(other.kind === "request") - Number(one.kind === "request"));
    if (this.isUp) this.step({ kind: "tick" });
  }

  step(input: Input): void {
    if (this.replica === undefined) return;
    // Timers do not pile up.
    if (this.isPaused && input.kind === "tick") return;
    this.#inputs.push(input);
    // What an effect brings about at once waits until that effect's turn is over.
    if (this.#isTaking || this.isPaused) return;
    this.#isTaking = true;
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) {
        this.replica?.step(next, this.plan.clockMs());
        this.#takeTurns();
      }
    } finally {
      this.#isTaking = false;
    }
    if (this.isUp) this.#world.stepped(this);
  }

  /** Another turn of what there was too much of for one. */
  goOn(): void {
    this.#hasMore = false;
    if (this.#isTaking || this.isPaused || !this.isUp) return;
    this.#isTaking = true;
    try {
      this.#takeTurns();
    } finally {
      this.#isTaking = false;
    }
    // What the effects have brought about, if anything.
    const next = this.#inputs.shift();
    if (next !== undefined) this.step(next);
    else if (this.isUp) this.#world.stepped(this);
  }

  #takeTurns(): void {
    for (let turns = 0; turns < this.plan.turnsAtOnce; turns += 1) {
      const effects = this.#take();
      if (effects === undefined) return;
      this.#carryOut(effects);
    }
    if (this.#hasMore) return;
    this.#hasMore = true;
    this.#world.hasMore(this);
  }

  #take(): Effects | undefined {
    const { replica } = this;
    if (replica === undefined) return undefined;
    const { visits } = replica;
    const before = visits.count;
    const effects = replica.take();
    this.#world.worked(this, visits.count - before);
    return effects;
  }

  /** A snapshot has come over the network, whole. */
  receiveSnapshot(message: InstallSnapshot, { pieces }: StoredSnapshot): void {
    this.#arrived.set(message.meta.index, pieces);
    this.step({ kind: "snapshot-received", message, state: this.#restore(pieces) });
  }

  /** What reads snapshots, a disk or a connection, takes pieces up to a bound, here one that few versions fill. */
  #restore(pieces: readonly Uint8Array[]): CoreState {
    const { snapshotPieceBytes = Infinity } = this.plan.limits;
    const tooLarge = pieces.find(({ length }) => length > 2 * snapshotPieceBytes);
    if (tooLarge !== undefined)
      this.#world.report("durability", `a snapshot has a piece of ${tooLarge.length} bytes`);
    return restoreState(pieces);
  }

  get writesPending(): number {
    return this.#queue.filter((queued) => "persist" in queued).length;
  }

  /** Up to where a snapshot has replaced the log, which is not on disk yet; 0 if none has. */
  get installingIndex(): number {
    const indexes = this.#queue.map((queued) =>
      "persist" in queued ? (queued.persist.snapshot?.index ?? 0) : 0,
    );
    return greatest(indexes, 0);
  }

  /** The oldest write is on disk, and what waited behind it leaves. */
  finishWrite(): void {
    const write = this.#queue.shift();
    if (write === undefined || !("persist" in write)) return;
    this.disk.write(write);
    this.#release();
    if (!faults.acknowledgedBeforeSync) this.step({ kind: "persisted", sequence: write.persist.sequence });
  }

  finishSnapshot(): void {
    const snapshot = this.#snapshot;
    if (snapshot === undefined) return;
    this.#snapshot = undefined;
    this.disk.takeSnapshot(snapshot);
    this.step({ kind: "snapshot-written", meta: snapshot.meta });
  }

  #carryOut({ persist, early, messages, answers, watches, snapshot, leadership }: Effects): void {
    if (leadership?.role === "leader") this.#world.leads(this);
    for (const message of early) this.#send(message);
    if (persist !== undefined) this.#write(persist);
    if (faults.acknowledgedBeforeSync) for (const message of messages) this.#send(message);
    else if (messages.length > 0) this.#queue.push({ messages });
    this.#release();
    for (const answer of answers) this.#world.answered(this, answer);
    for (const watch of watches) this.#world.watched(this, watch);
    if (snapshot === undefined) return;
    this.#snapshot = { meta: snapshot.meta, pieces: [...snapshot.pieces] };
    this.#world.writingSnapshot(this);
  }

  #write(persist: PendingWrite["persist"]): void {
    const pieces = persist.snapshot && this.#arrived.get(persist.snapshot.index);
    this.#queue.push({ persist, pieces });
    this.#world.writing(this);
    if (faults.acknowledgedBeforeSync) this.step({ kind: "persisted", sequence: persist.sequence });
  }

  #release(): void {
    for (let first = this.#queue[0]; first !== undefined && "messages" in first; first = this.#queue[0]) {
      this.#queue.shift();
      for (const message of first.messages) this.#send(message);
    }
  }

  /** The newest snapshot on disk stands in for the one that the log asked for; at first there is an empty state. */
  #send(message: PeerMessage): void {
    if (message.kind !== "snapshot") {
      this.#world.send(message, undefined);
      return;
    }
    const empty = { meta: message.meta, pieces: [...snapshotPieces(new CoreState())] };
    const snapshot = this.disk.snapshot ?? empty;
    this.#world.send({ ...message, meta: snapshot.meta }, snapshot);
  }
}
