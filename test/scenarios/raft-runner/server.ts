import type { BothClocks } from "../../../packages/leasehold/src/common/both-clocks.js";
import type { RaftLimits, Recovered } from "../../../packages/core/src/raft/api.js";
import { Raft } from "../../../packages/core/src/raft/raft.js";
import type {
  Entry,
  InstallSnapshot,
  MemberId,
  Message,
  Persist,
  Ready,
  SnapshotMeta,
} from "../../../packages/core/src/raft/types.js";

/** The state machine of these tests: the log itself, as text by index. */
export type History = ReadonlyMap<number, string>;

export interface Snapshot {
  readonly meta: SnapshotMeta;
  readonly history: History;
}

/** A message in flight, with the content of its snapshot if it has one. */
export interface Envelope {
  readonly message: Message;
  readonly history: History | undefined;
}

export interface Observer {
  sent(envelope: Envelope): void;
  /** Called before the output `persist` changes the server's log. */
  handedOut(server: Server, persist: Persist): void;
  /** Called after the log has changed, before anything else is done. */
  ready(server: Server, ready: Ready): void;
}

export interface ServerOptions {
  readonly id: MemberId;
  readonly recovered: Recovered;
  readonly random: { next(): number };
  readonly electionTicks?: number;
  readonly limits?: Partial<RaftLimits>;
  /** Writes stay in progress until `finishWrite`. */
  readonly slowDisk: boolean;
  readonly observer: Observer;
  /** The server's clocks, if the test uses any. */
  readonly clocks?: Clocks | undefined;
}

export interface Clocks {
  readonly holdMs: number;
  readonly clockRateError: number;
  readonly now: () => BothClocks;
}

/** An item that waits for the disk: a write, or messages that may not overtake one. */
interface Pending {
  readonly persist: Persist | undefined;
  readonly messages: readonly Message[];
}

/**
 * A host of `Raft` with a disk of its own, whose writes end when the test decides. It can crash and come
 * back.
 */
export class Server {
  readonly id: MemberId;
  readonly #options: ServerOptions;
  readonly #observer: Observer;
  slowDisk: boolean;
  raft: Raft | undefined;
  /** The state that a restart will find. */
  disk: Recovered;
  #diskHistory: Map<number, string> = new Map();
  /** The log as handed out, whether or not it is on disk yet. */
  log: Entry[] = [];
  logBase: SnapshotMeta;
  /** The entries applied. */
  history = new Map<number, string>();
  appliedIndex = 0;
  #pending: Pending[] = [];
  /** The content of a snapshot that has arrived; `Raft` decides whether to use it. */
  #arrived: Snapshot | undefined;

  constructor(options: ServerOptions) {
    this.id = options.id;
    this.#options = options;
    this.#observer = options.observer;
    this.slowDisk = options.slowDisk;
    this.disk = options.recovered;
    this.logBase = options.recovered.snapshot;
    this.start();
  }

  get isUp(): boolean {
    return this.raft !== undefined;
  }

  get writesPending(): number {
    return this.#pending.length;
  }

  start(): void {
    const { id, random, electionTicks = 10, limits = {}, clocks } = this.#options;
    this.#pending = [];
    this.#arrived = undefined;
    this.logBase = this.disk.snapshot;
    this.log = this.disk.entries.filter((entry) => entry.index > this.logBase.index);
    this.history = new Map(this.#diskHistory);
    this.appliedIndex = this.logBase.index;
    this.raft = new Raft({ id, random, recovered: this.disk, electionTicks, limits, ...clocks });
    this.setTime();
    this.drain();
  }

  /** Crashes the server: everything that was not on disk is lost. */
  crash(): void {
    this.raft = undefined;
    this.#pending = [];
  }

  receive(envelope: Envelope): void {
    if (this.raft === undefined) return;
    const { message, history } = envelope;
    this.setTime();
    if (message.kind === "snapshot") this.#arrived = { meta: message.meta, history: history! };
    this.raft.step(message);
    this.drain();
  }

  /** Runs `action` on the log, and then all that follows from it. */
  act<T>(action: (raft: Raft) => T): T | undefined {
    if (this.raft === undefined) return undefined;
    this.setTime();
    const result = action(this.raft);
    this.drain();
    return result;
  }

  setTime(): void {
    const { clocks } = this.#options;
    if (clocks !== undefined) this.raft?.setTime(clocks.now());
  }

  drain(): void {
    for (let ready = this.raft?.ready(); ready !== undefined; ready = this.raft?.ready()) {
      if (ready.persist !== undefined) this.#keep(ready.persist);
      this.#observer.ready(this, ready);
      for (const message of [...ready.early, ...ready.notices]) this.#send(message);
      if (ready.persist !== undefined || ready.messages.length > 0)
        this.#pending.push({ persist: ready.persist, messages: ready.messages });
      this.#apply(ready.committed);
      if (!this.slowDisk) while (this.#pending.length > 0) this.#finishOne();
    }
  }

  /** Completes the oldest write. */
  finishWrite(): void {
    if (this.#pending.length === 0) return;
    this.setTime();
    this.#finishOne();
    this.drain();
  }

  compact(keepEntries: number): void {
    this.act((raft) => {
      const meta = raft.snapshotMeta(this.appliedIndex);
      this.#diskHistory = new Map(this.history);
      this.disk = {
        ...this.disk,
        snapshot: meta,
        entries: this.disk.entries.filter((entry) => entry.index > meta.index - keepEntries),
      };
      raft.compact(meta, keepEntries);
    });
  }

  #finishOne(): void {
    const { persist, messages } = this.#pending.shift()!;
    if (persist !== undefined) {
      this.#write(persist);
      this.raft!.persisted(persist.sequence);
    }
    for (const message of messages) this.#send(message);
  }

  #write({ hardState, entries, snapshot }: Persist): void {
    let kept = this.disk.entries;
    if (snapshot !== undefined) {
      kept = [];
      this.#diskHistory = new Map(this.history);
    }
    const [first] = entries;
    if (first !== undefined) kept = [...kept.filter((entry) => entry.index < first.index), ...entries];
    this.disk = { hardState, snapshot: snapshot ?? this.disk.snapshot, entries: kept };
  }

  #keep(persist: Persist): void {
    const { snapshot, entries } = persist;
    this.#observer.handedOut(this, persist);
    if (snapshot !== undefined) {
      this.log = [];
      this.logBase = snapshot;
      this.history = new Map(this.#arrived!.history);
      this.appliedIndex = snapshot.index;
      this.raft!.applied(snapshot.index);
    }
    const [first] = entries;
    if (first !== undefined)
      this.log = [...this.log.filter((entry) => entry.index < first.index), ...entries];
  }

  #apply(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.history.set(entry.index, textOf(entry));
      this.appliedIndex = entry.index;
    }
    if (entries.length > 0) this.raft!.applied(this.appliedIndex);
  }

  #send(message: Message): void {
    if (message.kind !== "snapshot") this.#observer.sent({ message, history: undefined });
    else {
      // The current state, even if the log has an older snapshot, as a real host may send it.
      const meta = this.raft!.snapshotMeta(this.appliedIndex);
      const newer: InstallSnapshot = { ...message, meta };
      this.#observer.sent({ message: newer, history: new Map(this.history) });
    }
  }
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function textOf(entry: Entry): string {
  const text = new TextDecoder().decode(entry.data);
  if (entry.kind === "config") return `${entry.term}:${entry.change.kind} ${entry.change.member}`;
  return text === "" ? `${entry.term}:no-op` : `${entry.term}:${text}`;
}
