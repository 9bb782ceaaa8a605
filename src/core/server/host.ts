import type { WatchRequest, WatchResponse } from "../gen/etcd/rpc_pb.js";
import type { InstallSnapshot } from "../raft/types.js";
import type { CoreServer, ReplicaStatus } from "../replica/api.js";
import type {
  Answer,
  ClientRequest,
  Effects,
  Input,
  PeerMessage,
  SnapshotToWrite,
} from "../replica/types.js";
import { CoreError } from "../state/errors.js";
import type { CoreState } from "../state/state.js";
import type { Disk, ReceivedSnapshot } from "./disk/disk.js";
import { Turns } from "./turns.js";

export type Settle = (result: Answer["result"]) => void;
export type Deliver = (response: WatchResponse | CoreError) => void;

export interface HostOptions {
  readonly server: CoreServer;
  readonly disk: Disk;
  readonly tickMs: number;
  readonly send: (message: PeerMessage) => void;
  /** The server cannot go on; nothing is answered any more. Called once. */
  readonly failed: (error: unknown) => void;
  /** For people: it goes on nevertheless. */
  readonly trouble: (text: string) => void;
  readonly leadership: (leadership: NonNullable<Effects["leadership"]>) => void;
}

/**
 * Drives a server's logic: what happens in one turn of the event loop goes in together, and what is to be done comes out
 * once, so that many requests make one write to disk and one message to each follower. Nothing here waits for the disk. What takes
 * longer than a turn goes on in the next one.
 */
export class CoreHost {
  readonly #options: HostOptions;
  readonly #answers = new Map<number, Settle>();
  readonly #watches = new Map<number, Deliver>();
  readonly #ticking: NodeJS.Timeout;
  /** Writes that are not on disk yet, and the last of them. */
  #writing = 0;
  #lastWrite: Promise<void> = Promise.resolve();
  /** The snapshot that is being written, if one is. */
  #saving: Promise<void> = Promise.resolve();
  /** Snapshots that have come in this turn. */
  #received: ReceivedSnapshot[] = [];
  #lastId = 0;
  #isScheduled = false;
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | undefined;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#ticking = setInterval(() => this.step({ kind: "tick" }), options.tickMs);
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  status(): ReplicaStatus {
    return this.#options.server.status();
  }

  step(input: Input): void {
    if (this.#isStopped) return;
    try {
      this.#options.server.step(input, performance.now());
    } catch (error) {
      this.#fail(error);
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#turn);
  }

  /**
   * Asks something for a client.
   *
   * @param client whose it is
   * @param settle called once, unless the request is cancelled before
   * @returns the number to cancel it by
   */
  request(client: string, request: ClientRequest, deadlineMs: number, settle: Settle): number {
    const id = ++this.#lastId;
    if (this.#isStopped) {
      settle(new CoreError("stopped"));
      return id;
    }
    this.#answers.set(id, settle);
    this.step({ kind: "request", id, client, request, deadlineMs });
    return id;
  }

  /** The client is gone. */
  cancel(id: number): void {
    if (this.#answers.delete(id)) this.step({ kind: "cancel", id });
  }

  /** Begins a stream of watches, and answers its number. */
  openWatches(deliver: Deliver): number {
    const stream = ++this.#lastId;
    this.#watches.set(stream, deliver);
    return stream;
  }

  watch(stream: number, request: WatchRequest): void {
    if (this.#watches.has(stream)) this.step({ kind: "watch", stream, request });
  }

  watchSent(stream: number, responses: number): void {
    if (this.#watches.has(stream)) this.step({ kind: "watch-sent", stream, responses });
  }

  closeWatches(stream: number): void {
    if (this.#watches.delete(stream)) this.step({ kind: "watch-closed", stream });
  }

  /** A snapshot has arrived as a whole; `state` was restored from it. */
  receiveSnapshot(message: InstallSnapshot, pieces: readonly Uint8Array[], state: CoreState): void {
    this.#received.push({ meta: message.meta, pieces });
    this.step({ kind: "snapshot-received", message, state });
  }

  /** What is under way is answered with `server stopped`; resolves when nothing is written any more. Idempotent. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#stopping.abort(new Error("the server has stopped"));
    clearInterval(this.#ticking);
    for (const settle of this.#answers.values()) settle(new CoreError("stopped"));
    this.#answers.clear();
    await Promise.all([this.#lastWrite, this.#saving]);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    const turns = new Turns();
    try {
      for (let effects = this.#take(); effects !== undefined; effects = this.#take()) {
        this.#carryOut(effects);
        if (!turns.isOver) continue;
        this.#schedule();
        break;
      }
    } catch (error) {
      this.#fail(error);
    }
    // A snapshot that was not taken at once was not wanted.
    this.#received = [];
  };

  #take(): Effects | undefined {
    return this.#isStopped ? undefined : this.#options.server.take();
  }

  #carryOut({ early, persist, messages, answers, watches, snapshot, leadership }: Effects): void {
    const { send } = this.#options;
    for (const message of early) send(message);
    if (persist !== undefined) this.#persist(persist, messages);
    else if (this.#writing > 0) this.#afterWrites(messages);
    else for (const message of messages) send(message);
    for (const { id, result } of answers) {
      const settle = this.#answers.get(id);
      this.#answers.delete(id);
      if (settle !== undefined) this.#hand(settle, result);
    }
    for (const { stream, response } of watches) {
      const deliver = this.#watches.get(stream);
      if (deliver !== undefined) this.#hand(deliver, response);
    }
    if (snapshot !== undefined) this.#saving = this.#save(snapshot);
    if (leadership !== undefined) this.#options.leadership(leadership);
  }

  /** What goes wrong at one client's edge is not this server's end. */
  #hand<Content>(take: (content: Content | CoreError) => void, content: Content | CoreError): void {
    if (content instanceof CoreError && content.failure === "internal") this.#mistake(content.cause);
    try {
      take(content);
    } catch (error) {
      this.#mistake(error);
    }
  }

  #mistake(error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#options.trouble(`a client's request has failed inside the server: ${text}`);
  }

  /** Persist before send. */
  #persist(persist: NonNullable<Effects["persist"]>, messages: readonly PeerMessage[]): void {
    this.#writing += 1;
    const received = this.#received.find(({ meta }) => meta.index === persist.snapshot?.index);
    this.#lastWrite = this.#options.disk.persist(persist, received).then(
      () => {
        this.#writing -= 1;
        if (this.#isStopped) return;
        for (const message of messages) this.#options.send(message);
        this.step({ kind: "persisted", sequence: persist.sequence });
      },
      (error: unknown) => this.#fail(error),
    );
  }

  #afterWrites(messages: readonly PeerMessage[]): void {
    if (messages.length === 0) return;
    this.#lastWrite = this.#lastWrite.then(() => {
      if (!this.#isStopped) for (const message of messages) this.#options.send(message);
    });
  }

  async #save(snapshot: SnapshotToWrite): Promise<void> {
    try {
      await this.#options.disk.saveSnapshot(snapshot, this.#stopping.signal);
      this.step({ kind: "snapshot-written", meta: snapshot.meta });
    } catch (error) {
      if (this.#isStopped) return;
      // The log has everything: another is tried later. If the log cannot be written either, that stops the server.
      this.#options.trouble(`no snapshot was taken: ${(error as Error).message}`);
      this.step({ kind: "snapshot-failed" });
    }
  }

  #fail(error: unknown): void {
    if (this.#isStopped) return;
    void this.stop();
    this.#options.failed(error);
  }
}
