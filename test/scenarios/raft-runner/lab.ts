import type { RaftLimits, RaftOptions, Recovered } from "../../../packages/core/src/raft/api.js";
import { founding, joining } from "../../../packages/core/src/raft/options.js";
import { Raft } from "../../../packages/core/src/raft/raft.js";
import { nobody } from "../../../packages/core/src/raft/types.js";
import type { Entry, MemberId, Message, Ready, SnapshotMeta } from "../../../packages/core/src/raft/types.js";
import { bytesOf, Server, textOf } from "./server.js";
import type { Envelope, Observer } from "./server.js";

/** Always the shortest election timeout: tests choose which server stands first. */
export const shortest = { next: () => 0 };

/**
 * Entries with these terms: `log(1, 1, 4)` has terms 1, 1 and 4 at indices 2, 3 and 4 (1 is the founding
 * snapshot).
 */
export function log(...terms: readonly number[]): Entry[] {
  return terms.map((term, offset) => ({
    kind: "normal",
    index: offset + 2,
    term,
    data: bytesOf(`${term}.${offset + 2}`),
  }));
}

/** A disk with a log, after `voters` were founded. */
export function disk(
  voters: readonly MemberId[],
  entries: readonly Entry[],
  state: { term?: number; votedFor?: MemberId; commit?: number } = {},
): Recovered {
  const { term = entries.at(-1)?.term ?? 1, votedFor = nobody, commit = 1 } = state;
  return { ...founding(voters), hardState: { term, votedFor, commit }, entries };
}

/** One server, and a host that takes its output when the test asks for it. */
export class Single {
  readonly raft: Raft;

  constructor(
    id: MemberId,
    recovered: Recovered,
    limits: Partial<RaftLimits> = {},
    clocks: Pick<RaftOptions, "holdMs" | "clockRateError"> = {},
  ) {
    this.raft = new Raft({ id, recovered, random: shortest, limits, ...clocks });
  }

  /** Moves both clocks; they go on together unless `wallMs` is given. */
  at(monotonicMs: number, wallMs = monotonicMs): void {
    this.raft.setTime({ monotonicMs, wallMs });
  }

  /** All pending output, with every write done at once. */
  drain(): Omit<Ready, "persist" | "leadership"> {
    const all = { early: [], notices: [], messages: [], committed: [], reads: [], objections: [] } as Record<
      string,
      unknown[]
    >;
    for (let ready = this.raft.ready(); ready !== undefined; ready = this.raft.ready()) {
      if (ready.persist !== undefined) this.raft.persisted(ready.persist.sequence);
      if (ready.persist?.snapshot !== undefined) this.raft.applied(ready.persist.snapshot.index);
      if (ready.committed.length > 0) this.raft.applied(ready.committed.at(-1)!.index);
      for (const key of ["early", "notices", "messages", "committed", "reads", "objections"] as const)
        all[key]!.push(...ready[key]);
    }
    return all as unknown as Omit<Ready, "persist" | "leadership">;
  }

  /** Hands in a message, and returns the messages sent because of it. */
  exchange(message: Message): Message[] {
    this.raft.step(message);
    const { early, notices, messages } = this.drain();
    return [...early, ...notices, ...messages];
  }

  tick(count = 1): Message[] {
    const sent: Message[] = [];
    for (let tick = 0; tick < count; tick += 1) {
      this.raft.tick();
      const { early, notices, messages } = this.drain();
      sent.push(...early, ...notices, ...messages);
    }
    return sent;
  }
}

/** A cluster whose messages wait until the test delivers them, and whose disks can be slow. */
export class Lab implements Observer {
  readonly servers = new Map<MemberId, Server>();
  network: Envelope[] = [];
  /** Every read handed out as answerable: server, id, index. */
  readonly reads: { server: MemberId; id: number; index: number }[] = [];
  /** Pairs of servers cut off from each other in both directions: "1-2". */
  readonly cut = new Set<string>();
  readonly limits: Partial<RaftLimits>;
  readonly delivered: Message[] = [];

  constructor(disks: Readonly<Record<number, Recovered>>, limits: Partial<RaftLimits> = {}) {
    this.limits = limits;
    for (const [id, recovered] of Object.entries(disks)) this.add(BigInt(id), recovered);
  }

  /** A cluster of `count` founders. */
  static of(count: number, limits: Partial<RaftLimits> = {}): Lab {
    const voters = Array.from({ length: count }, (_, index) => BigInt(index + 1));
    return new Lab(Object.fromEntries(voters.map((id) => [Number(id), founding(voters)])), limits);
  }

  add(id: MemberId, recovered: Recovered = joining()): Server {
    const { limits } = this;
    const server = new Server({ id, recovered, random: shortest, limits, slowDisk: false, observer: this });
    this.servers.set(id, server);
    return server;
  }

  server(id: number): Server {
    return this.servers.get(BigInt(id))!;
  }

  raft(id: number): Raft {
    return this.server(id).raft!;
  }

  status(id: number): ReturnType<Raft["status"]> {
    return this.raft(id).status();
  }

  tick(id: number, count = 1): void {
    for (let tick = 0; tick < count; tick += 1) this.server(id).act((raft) => raft.tick());
  }

  /** Lets time pass for all servers. */
  pass(count: number): void {
    for (let tick = 0; tick < count; tick += 1) {
      for (const server of this.servers.values()) server.act((raft) => raft.tick());
      this.deliver();
    }
  }

  /**
   * Elects this server: the others have heard nothing for long enough, it stands, and all messages are
   * delivered.
   */
  elect(id: number): void {
    for (const server of this.servers.values())
      if (server.id !== BigInt(id)) for (let tick = 0; tick < 10; tick += 1) this.#tickSilently(server);
    this.tick(id, 10);
    this.deliver();
  }

  #tickSilently(server: Server): void {
    if (server.raft?.status().role === "leader") return;
    server.act((raft) => raft.tick());
    this.network = this.network.filter(({ message }) => message.from !== server.id);
  }

  propose(id: number, ...texts: readonly string[]): boolean {
    return this.server(id).act((raft) => raft.propose(texts.map(bytesOf)))!.accepted;
  }

  change(id: number, kind: "add-voter" | "add-learner" | "promote" | "remove", member: number): string {
    const proposed = this.server(id).act((raft) =>
      raft.proposeChange({ kind, member: BigInt(member) }, new Uint8Array(0)),
    )!;
    return proposed.accepted ? "accepted" : proposed.reason;
  }

  partition(...sides: readonly (readonly number[])[]): void {
    for (const [index, side] of sides.entries())
      for (const other of sides.slice(index + 1))
        for (const one of side) for (const two of other) this.cut.add(`${one}-${two}`).add(`${two}-${one}`);
  }

  heal(): void {
    this.cut.clear();
  }

  /**
   * Delivers all messages in flight and all that follow, or only those that `which` accepts; the rest is
   * lost.
   */
  deliver(which: (message: Message) => boolean = () => true): void {
    for (let count = 0; this.network.length > 0; count += 1) {
      if (count > 10_000) throw new Error("this never ends");
      const envelope = this.network.shift()!;
      const { from, to, kind } = envelope.message;
      const arrives = !this.cut.has(`${from}-${to}`) && which(envelope.message);
      const receiver = this.servers.get(to);
      if (arrives && receiver?.isUp === true) {
        this.delivered.push(envelope.message);
        receiver.receive(envelope);
      } else if (kind === "snapshot") this.servers.get(from)?.act((raft) => raft.reportSnapshot(to, false));
    }
  }

  /** The log of a server, as text. */
  log(id: number): string[] {
    return this.server(id).log.map(textOf);
  }

  /** The entries that a server has applied, as text. */
  applied(id: number): string[] {
    return [...this.server(id).history.values()];
  }

  snapshotOf(id: number): SnapshotMeta {
    return this.server(id).logBase;
  }

  sent(envelope: Envelope): void {
    this.network.push(envelope);
  }

  handedOut(): void {}

  ready(server: Server, { reads }: Ready): void {
    for (const { id, index } of reads) this.reads.push({ server: server.id, id, index });
  }
}
