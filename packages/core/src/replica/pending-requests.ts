import { type DeadlineItem, Deadlines, NumberMap, Room } from "leasehold/common";
import { type CoreError, tooManyRequests } from "../state/errors.js";
import type { ReplicaLimits } from "./options.js";
import type { Answer, ClientRequest, ClientResponse, Credentials, Input } from "./types.js";

export interface PendingRequest extends DeadlineItem {
  readonly id: number;
  readonly client: string;
  readonly request: ClientRequest;
  /**
   * Names the request's command in the log. When proposed again in the same term after a refusal, the command
   * gets another number.
   */
  number: number;
  /** The first number it had. */
  readonly firstNumber: number;
  readonly credentials: Credentials | undefined;
  /** The command for the log; undefined if the request needs none. */
  command: Uint8Array | undefined;
  /** Bytes of its original command. */
  readonly bytes: number;
  /** Authorization must be checked when the leader has confirmed the read index. */
  isUnclear: boolean;
  /**
   * `waiting`: nothing was sent, or nothing that was sent can have an effect. `proposed`: the command may be
   * applied at any time, or never. `asked`: the leader was asked for something that changes no key.
   */
  stage: "waiting" | "proposed" | "asked";
  /** While proposed: the only term in which it may have been appended. */
  term: number;
  /** The connection by which the request may have reached the leader in that term; -1: not sent. */
  connection: number;
  readonly dueMs: number;
  isOpen: boolean;
}

type Asked = Extract<Input, { kind: "request" }>;

/** Pending requests of clients. Each has a deadline, and their number is bounded. */
export class PendingRequests {
  readonly #count: Room;
  readonly #bytes: Room;
  /** Called when the client has gone. */
  readonly #closed: (pending: PendingRequest) => void;
  readonly #byId = new NumberMap<PendingRequest>();
  /** Requests that go through the log. */
  readonly #commands = new NumberMap<PendingRequest>();
  readonly #deadlines = new Deadlines<PendingRequest>();
  #answers: Answer[] = [];

  constructor(limits: ReplicaLimits, closed: (pending: PendingRequest) => void) {
    this.#count = new Room(limits.requestsMax, tooManyRequests);
    this.#bytes = new Room(limits.requestBytesTotalMax, tooManyRequests);
    this.#closed = closed;
  }

  get size(): number {
    return this.#byId.size;
  }

  /**
   * The first number of the oldest request with a command. Reads do not count: they are not proposed, and may
   * take long.
   */
  get oldestCommand(): number | undefined {
    return this.#commands.first()?.[1].firstNumber;
  }

  takeAnswers(): readonly Answer[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }

  /** @throws CoreError `tooManyRequests` */
  admit(
    { id, client, credentials, request, deadlineMs }: Asked,
    number: number,
    command: Uint8Array | undefined,
  ): PendingRequest {
    if (this.#byId.has(id)) throw new RangeError(`request ${id} is not answered yet`);
    const bytes = command?.length ?? 0;
    this.#take(client, bytes);
    const pending: PendingRequest = {
      id,
      client,
      request,
      number,
      firstNumber: number,
      credentials,
      command,
      bytes,
      isUnclear: false,
      stage: "waiting",
      term: 0,
      connection: -1,
      isOpen: true,
      dueMs: deadlineMs,
      heapIndex: -1,
    };
    this.#byId.set(id, pending);
    if (command !== undefined) this.#commands.set(id, pending);
    this.#deadlines.schedule(pending, deadlineMs);
    return pending;
  }

  #take(client: string, bytes: number): void {
    this.#count.take(client, 1);
    if (this.#bytes.tryTake(client, bytes)) return;
    this.#count.release(client, 1);
    throw this.#bytes.refusal(client);
  }

  /** Answers a request that never became pending. */
  answerAtOnce(id: number, result: ClientResponse | CoreError): void {
    this.#answers.push({ id, result });
  }

  answer(pending: PendingRequest, result: ClientResponse | CoreError): void {
    if (this.#close(pending)) this.#answers.push({ id: pending.id, result });
  }

  /**
   * From now on the request waits only for its own turns here, which end with an answer or a cancellation.
   */
  begun(pending: PendingRequest): void {
    this.#deadlines.cancel(pending);
  }

  cancel(id: number): void {
    const pending = this.#byId.get(id);
    if (pending !== undefined) this.#close(pending);
  }

  /** Removes the next request that is due: it can no longer be answered. */
  popDue(nowMs: number): PendingRequest | undefined {
    return this.#deadlines.popDue(nowMs);
  }

  #close(pending: PendingRequest): boolean {
    if (!pending.isOpen) return false;
    pending.isOpen = false;
    this.#byId.delete(pending.id);
    this.#commands.delete(pending.id);
    this.#deadlines.cancel(pending);
    const { bytes, client } = pending;
    this.#count.release(client, 1);
    this.#bytes.release(client, bytes);
    this.#closed(pending);
    return true;
  }
}
