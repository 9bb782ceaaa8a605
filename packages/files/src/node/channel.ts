import type { Socket } from "node:net";
import { unwatchAbort, watchAbort, errorCodes, type ErrorCode, LeaseholdError } from "leasehold/common";
import { FileUncertainError } from "../uncertain.js";
import type { Answered, AskOptions } from "../protocol/messages.js";
import { noBytes } from "../protocol/messages.js";
import { FrameReader, writeFrame } from "./frames.js";

/** The most unanswered requests to one node, and the most bytes in them. */
const pendingMax = 1_024;
const pendingBytesMax = 64 * 2 ** 20;

/** The longest wait for a connection, ms. */
const dialMsMax = 1_000;

/** Dials the node and verifies its identity. Resolves with the paused socket. */
export type Dial = (signal: AbortSignal) => Promise<Socket>;

interface Pending {
  readonly bytes: number;
  readonly settle: (answered: Answered<never> | LeaseholdError) => void;
}

/** How an error is encoded in an answer. */
export interface ErrorHead {
  readonly code: string;
  readonly message: string;
  readonly isSettledByNext?: boolean;
}

interface AnswerHead {
  readonly id: number;
  readonly answer?: never;
  readonly error?: ErrorHead;
}

/** One connection to a node, dialled on demand and again after it is lost. */
export class Channel {
  readonly #node: string;
  readonly #dial: Dial;
  readonly #pending = new Map<number, Pending>();
  readonly #closing = new AbortController();
  #pendingBytes = 0;
  #lastId = 0;
  #socket: Promise<Socket> | undefined;

  constructor(node: string, dial: Dial) {
    this.#node = node;
    this.#dial = dial;
  }

  async ask(
    kind: string,
    ask: unknown,
    { body = noBytes, timeoutMs, signal }: AskOptions,
  ): Promise<Answered<never>> {
    signal?.throwIfAborted();
    if (this.#closing.signal.aborted) throw new LeaseholdError("CLOSED");
    if (this.#pending.size >= pendingMax || this.#pendingBytes + body.length > pendingBytesMax)
      throw new LeaseholdError("UNREACHABLE", `too many requests wait for node ${this.#node}`);
    const startedMs = performance.now();
    const socket = await this.#connected();
    const leftMs = Math.max(0, timeoutMs - (performance.now() - startedMs));
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      const id = this.#lastId;
      const settle = (answered: Answered<never> | LeaseholdError): void => {
        clearTimeout(timer);
        unwatchAbort(signal, abort);
        if (this.#pending.delete(id)) this.#pendingBytes -= body.length;
        if (answered instanceof LeaseholdError) reject(answered);
        else resolve(answered);
      };
      const abort = (): void =>
        settle(new LeaseholdError("TIMEOUT", `node ${this.#node} was not waited for`));
      const late = (): void =>
        settle(new LeaseholdError("TIMEOUT", `node ${this.#node} has not answered in time`));
      const timer = setTimeout(late, Math.min(leftMs, 2 ** 31 - 1));
      timer.unref();
      watchAbort(signal, abort);
      this.#pending.set(id, { bytes: body.length, settle });
      this.#pendingBytes += body.length;
      writeFrame(socket, { id, kind, ask }, body);
    });
  }

  close(): void {
    this.#closing.abort();
    void this.#socket?.then((socket) => socket.destroy()).catch(() => undefined);
  }

  #connected(): Promise<Socket> {
    this.#socket ??= this.#connect().catch((cause: unknown) => {
      this.#socket = undefined;
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new LeaseholdError("UNREACHABLE", `node ${this.#node} cannot be reached: ${why}`, { cause });
    });
    return this.#socket;
  }

  async #connect(): Promise<Socket> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(dialMsMax)]);
    const socket = await this.#dial(signal);
    const reader = new FrameReader();
    socket.setNoDelay(true);
    socket.unref();
    socket.on("data", (chunk: Buffer) => {
      try {
        for (const { head, body } of reader.read(chunk)) this.#arrived(head as AnswerHead, body);
      } catch {
        socket.destroy();
      }
    });
    socket.on("error", () => socket.destroy());
    socket.resume();
    socket.on("close", () => {
      this.#socket = undefined;
      for (const { settle } of this.#pending.values())
        settle(new LeaseholdError("TIMEOUT", `the connection to node ${this.#node} was lost`));
    });
    return socket;
  }

  #arrived({ id, answer, error }: AnswerHead, body: Uint8Array): void {
    const pending = this.#pending.get(id);
    if (error !== undefined) pending?.settle(errorOf(error));
    else if (answer !== undefined) pending?.settle({ answer, body });
  }
}

function errorOf({ code, message, isSettledByNext = false }: ErrorHead): LeaseholdError {
  if (code === "FILE_UNCERTAIN") return new FileUncertainError(message, isSettledByNext);
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "VERSION_MISMATCH";
  return new LeaseholdError(known, message);
}
