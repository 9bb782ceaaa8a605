import { clockRateErrorDefault } from "../../../packages/leasehold/src/common/clock-rates.js";
import { founding, joining } from "../../../packages/core/src/raft/options.js";
import type { ConfigChange, MemberId, Message } from "../../../packages/core/src/raft/types.js";
import { Invariants } from "./invariants.js";
import { bytesOf, Server } from "./server.js";
import type { Envelope, Observer } from "./server.js";

/** A small, fast generator (mulberry32): the same seed makes the same run. */
export function seeded(seed: number): { next(): number; below(bound: number): number } {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return { next, below: (bound) => Math.floor(next() * bound) };
}

export interface ChaosOptions {
  readonly servers: number;
  readonly steps: number;
  /** Members join and leave. */
  readonly changes: boolean;
}

/**
 * How long a server holds to a leader, in steps: about as long as an election takes, so that the clock
 * decides now and then.
 */
const holdMs = 300;
const clockRateError = clockRateErrorDefault;

/** With more messages in flight than this, the oldest are lost. */
const inflightMax = 100;

/**
 * A cluster under faults: messages are lost, repeated and reordered, disks are slow, servers crash and lose
 * what was not on disk, networks are partitioned. A step takes a millisecond, and clock rates differ as much
 * as allowed. The invariants are checked at every step.
 */
export class Chaos implements Observer {
  readonly #random: ReturnType<typeof seeded>;
  readonly #options: ChaosOptions;
  readonly #invariants = new Invariants();
  readonly servers: Server[] = [];
  #network: Envelope[] = [];
  /** Servers with the same number can reach each other. */
  readonly #side = new Map<MemberId, number>();
  #proposals = 0;
  #readId = 0;
  #nowMs = 0;
  readonly #seed: number;

  constructor(seed: number, options: ChaosOptions) {
    this.#seed = seed;
    this.#random = seeded(seed);
    this.#options = options;
    const voters = Array.from({ length: options.servers }, (_, index) => BigInt(index + 1));
    for (const id of voters) this.#add(id, founding(voters));
  }

  /** @throws Violation, or the error of `Raft` when it detects a problem by itself */
  run(): void {
    for (let step = 0; step < this.#options.steps; step += 1) {
      this.#nowMs += 1;
      this.#oneStep();
      for (const server of this.servers) this.#invariants.leadsByClock(server);
      if (step % 16 === 0) this.#invariants.logMatching(this.servers.filter((server) => server.isUp));
    }
  }

  /** Ends all faults; the cluster must work again. @returns how many entries have been committed */
  heal(): number {
    this.#side.clear();
    for (const server of this.servers) {
      if (!server.isUp) server.start();
      server.slowDisk = false;
      while (server.writesPending > 0) server.finishWrite();
    }
    const before = this.#invariants.committedMax;
    for (let round = 0; round < 200; round += 1) {
      this.#nowMs += holdMs / 4;
      for (const server of this.servers) server.act((raft) => raft.tick());
      this.#deliverAll();
      const leader = this.#leader();
      if (leader?.act((raft) => raft.propose([bytesOf("last")]))?.accepted) this.#deliverAll();
      if (this.#invariants.committedMax > before + 3 && this.#haveAll(leader)) break;
      if (round === 199) throw new Error("the cluster did not recover");
    }
    this.#invariants.logMatching(this.servers);
    return this.#invariants.committedMax;
  }

  #haveAll(leader: Server | undefined): boolean {
    if (leader?.raft === undefined) return false;
    const { voters, learners } = leader.raft.status().membership;
    const members = this.servers.filter(({ id }) => voters.includes(id) || learners.includes(id));
    return members.every((server) => server.appliedIndex >= leader.appliedIndex - 1);
  }

  // Observer

  sent(envelope: Envelope): void {
    this.#network.push(envelope);
    if (this.#network.length > inflightMax) this.#lose(this.#network.shift()!);
  }

  handedOut: Observer["handedOut"] = (server, persist) => this.#invariants.appendOnly(server, persist);
  ready: Observer["ready"] = (server, ready) => this.#invariants.observe(server, ready);

  // Steps

  #oneStep(): void {
    const server = this.#pick(this.servers);
    if (!server.isUp && this.#random.below(20) === 0) server.start();
    const dice = this.#random.below(1_000);
    if (dice < 500) this.#deliverOne();
    else if (dice < 700) server.finishWrite();
    else if (dice < 810) server.act((raft) => raft.tick());
    else if (dice < 890) this.#propose(server);
    else if (dice < 940) this.#read(server);
    else if (dice < 950) this.#crash(server);
    else if (dice < 958) this.#side.clear();
    else if (dice < 964) this.#side.set(server.id, 1 + this.#random.below(2));
    else if (dice < 972) this.#transfer(server);
    else if (dice < 978) server.act((raft) => raft.reportUnreachable(this.#pick(this.servers).id));
    else if (dice < 985) this.#compact(server);
    else if (this.#options.changes) this.#change();
  }

  /**
   * Crashes a server. At times it is back before the others have noticed, and then has to remember what it
   * has promised.
   */
  #crash(server: Server): void {
    server.crash();
    if (this.#random.below(2) === 0) server.start();
  }

  #compact(server: Server): void {
    if (server.isUp && server.appliedIndex > 1) server.compact(this.#random.below(4));
  }

  #deliverOne(): void {
    if (this.#network.length === 0) return;
    // Messages arrive mostly in order, but not always.
    const at = this.#random.below(4) === 0 ? this.#random.below(this.#network.length) : 0;
    const dice = this.#random.below(100);
    const envelope = this.#network[at]!;
    if (dice >= 6) this.#network.splice(at, 1);
    const { from, to } = envelope.message;
    const isParted = (this.#side.get(from) ?? 0) !== (this.#side.get(to) ?? 0);
    if (isParted || (dice >= 6 && dice < 12)) this.#lose(envelope);
    else this.#deliver(envelope);
  }

  #deliver(envelope: Envelope): void {
    const { message } = envelope;
    const receiver = this.servers.find(({ id }) => id === message.to);
    receiver?.receive(envelope);
    if (message.kind === "snapshot") this.#reportSnapshot(message, receiver?.isUp === true);
  }

  #lose({ message }: Envelope): void {
    if (message.kind === "snapshot") this.#reportSnapshot(message, false);
  }

  #reportSnapshot({ from, to }: Message, arrived: boolean): void {
    const sender = this.servers.find(({ id }) => id === from);
    // Without `act`: the loop that is handing out this very message must not be entered again.
    sender?.raft?.reportSnapshot(to, arrived);
  }

  #deliverAll(): void {
    for (let count = 0; this.#network.length > 0 && count < 20_000; count += 1)
      this.#deliver(this.#network.shift()!);
  }

  #propose(server: Server): void {
    const leader = this.#random.below(4) === 0 ? server : (this.#leader() ?? server);
    const data = Array.from({ length: 1 + this.#random.below(3) }, () =>
      bytesOf(`x${(this.#proposals += 1)}`),
    );
    leader.act((raft) => raft.propose(data));
  }

  /** Asks for a read from any server that believes it leads. */
  #read(server: Server): void {
    const leaders = this.servers.filter(({ raft }) => raft?.status().role === "leader");
    const reader = leaders.length > 0 ? this.#pick(leaders) : server;
    this.#readId += 1;
    this.#invariants.asked(reader, this.#readId);
    reader.act((raft) => raft.readIndex(this.#readId));
  }

  #transfer(server: Server): void {
    this.#leader()?.act((raft) => raft.transferLeader(server.id));
  }

  #change(): void {
    const leaders = this.servers.filter(({ raft }) => raft?.status().role === "leader");
    if (leaders.length === 0) return;
    const leader = this.#pick(leaders);
    const { voters, learners } = leader.raft!.status().membership;
    const kind = this.#pick(["add-voter", "add-learner", "promote", "remove"] as const);
    let member = this.#pick(kind === "promote" ? learners : [...voters, ...learners]);
    if (kind.startsWith("add")) {
      if (this.servers.length >= 7) return;
      member = BigInt(this.servers.length + 1);
      this.#add(member, joining());
    }
    if (member === undefined) return;
    const change: ConfigChange = { kind, member };
    leader.act((raft) => raft.proposeChange(change, new Uint8Array(0)));
  }

  #add(id: MemberId, recovered: ReturnType<typeof founding>): void {
    const random = this.#random;
    const limits = { inflightMessagesMax: 4, appendBytesMax: 100, uncommittedBytesMax: 2_000 };
    const rate = 1 + clockRateError * (((this.#seed + Number(id)) % 3) - 1);
    const now = () => ({ monotonicMs: this.#nowMs * rate, wallMs: this.#nowMs });
    const clocks = { holdMs, clockRateError, now };
    this.servers.push(
      new Server({ id, recovered, random, electionTicks: 6, limits, slowDisk: true, observer: this, clocks }),
    );
  }

  #leader(): Server | undefined {
    let leader: Server | undefined;
    let term = 0;
    for (const server of this.servers) {
      const status = server.raft?.status();
      if (status?.role !== "leader" || status.term <= term) continue;
      term = status.term;
      leader = server;
    }
    return leader;
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.below(from.length)]!;
  }
}
