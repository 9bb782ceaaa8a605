import { NumberMap } from "leasehold/common";
import type { WatchRequest, WatchResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { InstallSnapshot } from "../raft/types.js";
import type { ServerLogic, ReplicaStatus } from "../replica/api.js";
import type {
  Answer,
  ClientRequest,
  Credentials,
  Effects,
  Input,
  PeerMessage,
  SnapshotToWrite,
} from "../replica/types.js";
import { CoreError } from "../state/errors.js";
import type { CoreState } from "../state/state.js";
import type { HostPorts, ReceivedSnapshot } from "./ports.js";

export type Settle = (result: Answer["result"]) => void;
export type Deliver = (response: WatchResponse | CoreError) => void;

export interface HostOptions extends HostPorts {
  readonly logic: ServerLogic;
  readonly tickMs: number;
  /** Called once, when the server must stop. No request is answered after it. */
  readonly failed: (error: unknown) => void;
  /** Reports a problem that the server survives, as text for operators. */
  readonly trouble: (text: string) => void;
  readonly leadership: (leadership: NonNullable<Effects["leadership"]>) => void;
  readonly roll: (roll: NonNullable<Effects["roll"]>) => void;
  readonly compared: (comparison: NonNullable<Effects["compared"]>) => void;
}

/**
 * Messages that leave when a write is on disk, in order: those of the write, and those of later effects
 * without a write.
 */
type Waiting = (readonly PeerMessage[])[];

/**
 * Runs a server's logic, both in production and in the simulator. Inputs go in at once. The effects of all
 * inputs of one event loop turn are carried out together at its end, so many requests become one disk write
 * and one message to each follower. Nothing here waits for the disk. Remaining work continues in the next
 * turn.
 */
export class CoreHost {
  readonly #options: HostOptions;
  readonly #answers = new NumberMap<Settle>();
  readonly #watches = new Map<number, { readonly client: string; readonly deliver: Deliver }>();
  readonly #endTicks: () => void;
  /** Messages that wait for the last write in flight. */
  #waiting: Waiting | undefined;
  /** Writes and snapshots in flight. */
  #unfinished = 0;
  /** Snapshots received since the last turn. */
  #received: ReceivedSnapshot[] = [];
  #lastId = 0;
  #isScheduled = false;
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | undefined;
  #idle: () => void = () => undefined;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#endTicks = options.every(options.tickMs, () => this.step({ kind: "tick" }));
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  status(): ReplicaStatus {
    return this.#options.logic.status();
  }

  /** Returns the token's user, if the token is valid. */
  userOf(token: string): string | undefined {
    return this.#options.logic.userOf(token);
  }

  step(input: Input): void {
    if (this.#isStopped) return;
    try {
      this.#options.logic.step(input, this.#options.now());
    } catch (error) {
      this.#fail(error);
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.defer(this.#turn);
  }

  /**
   * Passes on a client's request.
   *
   * @param client the client key
   * @param settle called once, unless the request is cancelled first
   * @param credentials the user's; without: unauthenticated
   * @returns the number with which to cancel it
   */
  request(
    client: string,
    request: ClientRequest,
    deadlineMs: number,
    settle: Settle,
    credentials?: Credentials,
  ): number {
    const id = ++this.#lastId;
    if (this.#isStopped) {
      settle(new CoreError("stopped"));
      return id;
    }
    this.#answers.set(id, settle);
    this.step({ kind: "request", id, client, request, deadlineMs, credentials });
    return id;
  }

  /** Cancels the request of a client that is gone. */
  cancel(id: number): void {
    if (this.#answers.delete(id)) this.step({ kind: "cancel", id });
  }

  /** Opens a watch stream, and returns its number. @param client the client key */
  openWatches(client: string, deliver: Deliver): number {
    const stream = ++this.#lastId;
    this.#watches.set(stream, { client, deliver });
    return stream;
  }

  watch(stream: number, request: WatchRequest, credentials?: Credentials): void {
    const client = this.#watches.get(stream)?.client;
    if (client !== undefined) this.step({ kind: "watch", stream, client, request, credentials });
  }

  watchSent(stream: number, responses: number): void {
    if (this.#watches.has(stream)) this.step({ kind: "watch-sent", stream, responses });
  }

  closeWatches(stream: number): void {
    if (this.#watches.delete(stream)) this.step({ kind: "watch-closed", stream });
  }

  /** A snapshot has arrived completely; `state` was restored from it. */
  receiveSnapshot(message: InstallSnapshot, pieces: readonly Uint8Array[], state: CoreState): void {
    this.#received.push({ meta: message.meta, pieces });
    this.step({ kind: "snapshot-received", message, state });
  }

  /**
   * Answers pending requests with `server stopped`; resolves when the disk has finished everything.
   * Idempotent.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  #stop(): Promise<void> {
    this.#stopping.abort(new Error("the server has stopped"));
    this.#endTicks();
    for (const settle of this.#answers.values()) settle(new CoreError("stopped"));
    this.#answers.clear();
    return new Promise((resolve) => {
      this.#idle = resolve;
      if (this.#unfinished === 0) resolve();
    });
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    const turn = this.#options.beginTurn();
    try {
      for (let effects = this.#take(); effects !== undefined; effects = this.#take()) {
        this.#carryOut(effects);
        if (!turn.isOver) continue;
        this.#schedule();
        break;
      }
    } catch (error) {
      this.#fail(error);
    }
    // Snapshots that the logic did not accept in this turn are dropped.
    this.#received = [];
  };

  #take(): Effects | undefined {
    return this.#isStopped ? undefined : this.#options.logic.take();
  }

  #carryOut(effects: Effects): void {
    const { early, persist, messages, answers, notices, watches } = effects;
    const { snapshot, leadership, roll, compared, objections } = effects;
    // The roll comes first, as messages may be for a new member.
    if (roll !== undefined) this.#options.roll(roll);
    this.#send(early);
    if (persist !== undefined) this.#persist(persist, messages);
    else if (this.#waiting === undefined) this.#send(messages);
    else if (messages.length > 0) this.#waiting.push(messages);
    for (const { id, result } of answers) {
      const settle = this.#answers.get(id);
      this.#answers.delete(id);
      if (settle !== undefined) this.#hand(settle, result);
    }
    this.#send(notices);
    for (const { stream, response } of watches) {
      const deliver = this.#watches.get(stream)?.deliver;
      if (deliver !== undefined) this.#hand(deliver, response);
    }
    if (snapshot !== undefined) this.#save(snapshot);
    if (leadership !== undefined) this.#options.leadership(leadership);
    if (compared !== undefined) this.#options.compared(compared);
    for (const text of objections) this.#options.trouble(`a message was refused: ${text}`);
  }

  /** An error in one client's callback does not stop the server. */
  #hand<Content>(take: (content: Content | CoreError) => void, content: Content | CoreError): void {
    if (content instanceof CoreError && content.failure === "internal") this.#reportInternal(content.cause);
    try {
      take(content);
    } catch (error) {
      this.#reportInternal(error);
    }
  }

  #reportInternal(error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#options.trouble(`a client's request failed inside the server: ${text}`);
  }

  #send(messages: readonly PeerMessage[]): void {
    for (const message of messages)
      if (!this.#options.send(message)) this.step({ kind: "not-sent", message });
  }

  /** Persist before send (Raft, figure 2): what a message promises is on disk before the message leaves. */
  #persist(persist: NonNullable<Effects["persist"]>, messages: readonly PeerMessage[]): void {
    const waiting = [messages];
    this.#waiting = waiting;
    const received = this.#received.find(({ meta }) => meta.index === persist.snapshot?.index);
    this.#unfinished += 1;
    this.#options.disk.persist(persist, received, (error) => {
      if (this.#waiting === waiting) this.#waiting = undefined;
      this.#finished();
      if (error !== undefined) this.#fail(error);
      if (this.#isStopped) return;
      for (const each of waiting) this.#send(each);
      this.step({ kind: "persisted", sequence: persist.sequence });
    });
  }

  #save(snapshot: SnapshotToWrite): void {
    this.#unfinished += 1;
    this.#options.disk.saveSnapshot(snapshot, this.#stopping.signal, (error) => {
      this.#finished();
      if (error === undefined) {
        this.step({ kind: "snapshot-written", meta: snapshot.meta });
        return;
      }
      if (this.#isStopped) return;
      // The log still has everything, and the snapshot will be retried. If the log cannot be written either,
      // that stops the server.
      this.#options.trouble(`no snapshot was taken: ${(error as Error).message}`);
      this.step({ kind: "snapshot-failed" });
    });
  }

  #finished(): void {
    this.#unfinished -= 1;
    if (this.#unfinished === 0) this.#idle();
  }

  #fail(error: unknown): void {
    if (this.#isStopped) return;
    void this.stop();
    this.#options.failed(error);
  }
}
