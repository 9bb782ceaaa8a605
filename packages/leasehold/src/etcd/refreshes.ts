import { create } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import {
  type LeaseKeepAliveRequest,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
} from "./gen/etcd/rpc_pb.js";
import type { Timer, World } from "../common/ports.js";
import type { Duplex } from "./connection/connection.js";

/**
 * A stream whose oldest question is not answered for so long is given up, ms: its server is mute. Bounds what
 * waits on it.
 */
const muteMs = 2_000;

/** A stream that ended before it had answered anything is not opened again sooner, ms. */
const reopenMs = 100;

export type RefreshStream = Duplex<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;

interface Question {
  readonly leaseId: bigint;
  readonly askedMs: number;
  readonly timer: Timer;
  /**
   * Undefined once nobody waits for the answer. It keeps its place: answers come in the order of questions.
   */
  settle: ((result: LeaseKeepAliveResponse | ServiceError) => void) | undefined;
}

/**
 * All refreshes at one server, on one stream that stays open: a stream for each would be one that is reset
 * for each, and servers close a connection on which many are. The answers come in the order of the questions,
 * also those that nobody waits for any more.
 */
export class Refreshes {
  readonly #open: () => RefreshStream;
  readonly #world: World;
  #stream: RefreshStream | undefined;
  #questions: Question[] = [];
  #hasAnswered = false;
  /** Why the last stream ended that had not answered anything, and when. */
  #failure: { readonly error: ServiceError; readonly atMs: number } | undefined;

  constructor(open: () => RefreshStream, world: World) {
    this.#open = open;
    this.#world = world;
  }

  /** @throws ServiceError as of a call of its own */
  ask(
    leaseId: bigint,
    timeoutMs: number,
    canceller: (cancel: () => void) => void,
  ): Promise<LeaseKeepAliveResponse> {
    const { clock, timers } = this.#world;
    const nowMs = clock.monotonicMs();
    this.#giveUpIfMute();
    if (this.#failure !== undefined && this.#stream === undefined && nowMs - this.#failure.atMs < reopenMs)
      return Promise.reject(this.#failure.error);
    this.#stream ??= this.#begin();
    const stream = this.#stream;
    return new Promise((resolve, reject) => {
      const giveUp = (error: ServiceError) => {
        question.settle?.(error);
        this.#giveUpIfMute();
      };
      const timer = timers.after(timeoutMs, () => giveUp(serviceError(4, "Deadline exceeded")));
      const question: Question = {
        leaseId,
        askedMs: nowMs,
        timer,
        settle: (result) => {
          question.settle = undefined;
          timer.cancel();
          if (result instanceof Error) reject(result);
          else resolve(result);
        },
      };
      this.#questions.push(question);
      canceller(() => giveUp(serviceError(1, "Cancelled")));
      stream.write(create(LeaseKeepAliveRequestSchema, { ID: leaseId }));
    });
  }

  close(): void {
    this.#end(serviceError(1, "Cancelled"));
  }

  #begin(): RefreshStream {
    this.#hasAnswered = false;
    const stream = this.#open();
    stream.on("data", (answer: LeaseKeepAliveResponse) => this.#answered(answer));
    stream.on("error", (error: ServiceError) => this.#end(error));
    stream.on("end", () => this.#end(serviceError(14, "it ended the call")));
    return stream;
  }

  #answered(answer: LeaseKeepAliveResponse): void {
    const question = this.#questions.shift();
    if (question?.leaseId !== answer.ID) {
      // Whose refresh this is cannot be known: none is acknowledged.
      if (question !== undefined) this.#questions.unshift(question);
      this.#end(serviceError(13, "it answered a refresh that was not asked for"));
      return;
    }
    this.#hasAnswered = true;
    question.settle?.(answer);
  }

  #giveUpIfMute(): void {
    const [oldest] = this.#questions;
    if (oldest === undefined || this.#world.clock.monotonicMs() - oldest.askedMs < muteMs) return;
    this.#end(serviceError(4, "Deadline exceeded"));
  }

  #end(error: ServiceError): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.#stream = undefined;
    silence(stream);
    stream.cancel();
    this.#failure = this.#hasAnswered ? undefined : { error, atMs: this.#world.clock.monotonicMs() };
    for (const { settle } of this.#questions.splice(0)) settle?.(error);
  }
}

/** Nobody hears the stream any more, nor what a cancelled call still has to say. */
export function silence(stream: {
  on(event: "error", listener: () => void): unknown;
  removeAllListeners(event: string): unknown;
}): void {
  for (const event of ["data", "end", "error"]) stream.removeAllListeners(event);
  stream.on("error", () => undefined);
}

/** As grpc-js would make it. `code` is gRPC's. */
export function serviceError(code: number, details: string): ServiceError {
  return Object.assign(new Error(details), { code, details }) as ServiceError;
}
