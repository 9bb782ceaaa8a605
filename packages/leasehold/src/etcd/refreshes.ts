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
 * Timeout of the oldest question on a stream, ms. A server that exceeds it is mute, and the stream is closed.
 */
const muteMs = 2_000;

/** The pause before reopening a stream that ended without any answer, ms. */
const reopenMs = 100;

export type RefreshStream = Duplex<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;

interface Question {
  readonly leaseId: bigint;
  readonly askedMs: number;
  readonly timer: Timer;
  /**
   * Undefined once nobody waits for the answer. The entry stays, since answers come in the order of
   * questions.
   */
  settle: ((result: LeaseKeepAliveResponse | ServiceError) => void) | undefined;
}

/**
 * All refreshes at one server, on one long-lived stream: a stream for each refresh would be reset after each,
 * and servers close a connection with many resets. Answers come in the order of the questions, including
 * those that nobody waits for.
 */
export class Refreshes {
  readonly #open: () => RefreshStream;
  readonly #world: World;
  #stream: RefreshStream | undefined;
  #questions: Question[] = [];
  #hasAnswered = false;
  /** The time and the reason of the last stream that ended without any answer. */
  #failure: { readonly error: ServiceError; readonly atMs: number } | undefined;

  constructor(open: () => RefreshStream, world: World) {
    this.#open = open;
    this.#world = world;
  }

  /** @throws ServiceError as an ordinary call would */
  ask(leaseId: bigint, timeoutMs: number): Promise<LeaseKeepAliveResponse> {
    const { clock, timers } = this.#world;
    const nowMs = clock.monotonicMs();
    this.#giveUpIfMute();
    if (this.#failure !== undefined && this.#stream === undefined && nowMs - this.#failure.atMs < reopenMs)
      return Promise.reject(this.#failure.error);
    this.#stream ??= this.#begin();
    const stream = this.#stream;
    return new Promise((resolve, reject) => {
      const timer = timers.after(timeoutMs, () => {
        question.settle?.(serviceError(4, "Deadline exceeded"));
        this.#giveUpIfMute();
      });
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
    stream.on("end", () => this.#end(serviceError(14, "it ended the stream")));
    return stream;
  }

  #answered(answer: LeaseKeepAliveResponse): void {
    const question = this.#questions.shift();
    if (question?.leaseId !== answer.ID) {
      // The answered refresh is unknown, so none is acknowledged.
      if (question !== undefined) this.#questions.unshift(question);
      this.#end(serviceError(13, "it answered a refresh that was not requested"));
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

/** Ignores later errors of a stream or a cancelled call. */
export function silence(stream: {
  on(event: "error", listener: () => void): unknown;
  removeAllListeners(event: string): unknown;
}): void {
  for (const event of ["data", "end", "error"]) stream.removeAllListeners(event);
  stream.on("error", () => undefined);
}

/** Makes an error like those of grpc-js. `code` is gRPC's. */
export function serviceError(code: number, details: string): ServiceError {
  return Object.assign(new Error(details), { code, details }) as ServiceError;
}
