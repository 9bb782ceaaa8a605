import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { backOffMs } from "../common/back-off.js";
import { LeaseholdError } from "../lease/errors.js";
import type { World } from "../common/ports.js";
import { Auth, AuthenticateRequestSchema } from "./gen/etcd/auth_pb.js";
import { Lease, type LeaseKeepAliveResponse } from "./gen/etcd/rpc_pb.js";
import type { Connect, Connection, Method } from "./connection/connection.js";
import { Calls } from "./calls.js";
import type { CallLimits } from "./core-client.js";
import { CoreRefusal, type Failure, failureOf, noAnswer } from "./failure.js";
import { Refreshes, serviceError, silence } from "./refreshes.js";

/** Timeout of one call, ms: more than the election of a new leader usually takes. */
const callMsMax = 2_000;

/** Minimum time before another server is asked as well, ms: a busy machine needs it. */
const shareMsMin = 100;

/** Bound of the random pause after all servers failed, ms. It doubles up to the maximum. */
const pauseMsBase = 20;
const pauseMsMax = 500;

/** A user of the core. */
export interface Login {
  readonly name: string;
  readonly password: string;
}

/** How a client connects and authenticates. */
export interface Access {
  readonly connect: Connect;
  readonly login?: Login | undefined;
  /** Called when the client is closed. */
  readonly closed?: () => void;
}

interface Server {
  readonly endpoint: string;
  readonly connection: Connection;
  readonly refreshes: Refreshes;
}

/** A call to one server, and the turn in which that server was chosen. */
interface Call {
  readonly turn: number;
  readonly server: Server;
}

/** A stream of messages to and from one server. */
export interface Stream<Input extends DescMessage> {
  send(message: MessageShape<Input>): void;
  close(): void;
}

/** The servers of one core. A request goes to one of them, and to the next when that one does not answer. */
export class Servers {
  readonly #world: World;
  readonly #servers: readonly Server[];
  #token: string | undefined;
  /** A counter. Modulo the number of servers, it is the server to ask first. */
  #turn: number;
  #isClosed = false;
  readonly #login: Login | undefined;
  /** Whether the client has a token, or the core requires none. */
  #isLoggedIn: boolean;
  readonly #closed: (() => void) | undefined;

  constructor(endpoints: readonly string[], { connect, login, closed }: Access, world: World) {
    this.#world = world;
    this.#closed = closed;
    this.#login = login;
    this.#isLoggedIn = login === undefined;
    this.#servers = endpoints.map((endpoint) => {
      const connection = connect(endpoint);
      const open = () => connection.open(Lease.method.leaseKeepAlive, this.#token);
      return { endpoint, connection, refreshes: new Refreshes(open, world) };
    });
    // A random start spreads clients over the servers.
    this.#turn = Math.floor(world.random.next() * endpoints.length);
  }

  /** A unary call. It may be repeated at other servers, so it must be safe to carry out more than once. */
  ask<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    limits: CallLimits,
  ): Promise<MessageShape<Output>> {
    // A call that nobody waits for is not reset, but ends with its answer or at its deadline: servers close
    // connections with many resets.
    return this.#reach(limits, ({ connection }, callMs) =>
      connection.ask(method, request, this.#token, callMs),
    );
  }

  /** Renews the token for streams opened from now on. Without a token, the next request logs in. */
  async renewToken(limits: CallLimits): Promise<void> {
    this.#isLoggedIn = this.#login === undefined;
    await this.#reach(limits, () => Promise.resolve()).catch(() => undefined);
  }

  /** Logs in, unless there is a token or the core requires none. */
  async #logIn({ connection }: Server, callMs: number): Promise<void> {
    if (this.#isLoggedIn) return;
    this.#token = undefined;
    const request = create(AuthenticateRequestSchema, this.#login!);
    try {
      const { token } = await connection.ask(Auth.method.authenticate, request, undefined, callMs);
      this.#token = token;
    } catch (error) {
      if (!isServiceError(error) || !/authentication is not enabled/.test(error.details)) throw error;
    }
    this.#isLoggedIn = true;
  }

  /** Refreshes a lease, on the stream shared by all refreshes at a server. */
  refresh(leaseId: bigint, limits: CallLimits): Promise<LeaseKeepAliveResponse> {
    return this.#reach(limits, ({ refreshes }, callMs) => refreshes.ask(leaseId, callMs));
  }

  /**
   * Opens a stream to the current server; `ended` is called once, and the next stream goes to the next
   * server.
   */
  open<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    heard: (answer: MessageShape<Output>) => void,
    ended: () => void,
  ): Stream<Input> {
    const turn = this.#turn;
    const stream = this.#serverOf(turn).connection.open(method, this.#token);
    const end = () => {
      silence(stream);
      this.#pass(turn);
      ended();
    };
    stream.on("data", heard).on("end", end).on("error", end);
    return {
      send: (message) => void stream.write(message),
      close: () => {
        silence(stream);
        stream.cancel();
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const { connection, refreshes } of this.#servers) {
      refreshes.close();
      connection.close();
    }
    this.#closed?.();
  }

  /**
   * Asks one server, and if it is silent for its share of the time, also the next; the first answer counts.
   * If each had to answer within its share, a slow core would never answer in time.
   */
  async #reach<T>(
    { timeoutMs, cancellation }: CallLimits,
    ask: (server: Server, callMs: number) => Promise<T>,
  ): Promise<T> {
    const { clock, timers } = this.#world;
    const failures = new Map<string, Failure>();
    const calls = new Calls<Call, T>(timers);
    const isCancelled = () => cancellation?.cancelled === true;
    if (cancellation !== undefined) cancellation.onCancel = () => calls.wake();
    let nowMs = clock.monotonicMs();
    const endMs = nowMs + timeoutMs;
    let newest: Call | undefined;
    let nextMs = nowMs;
    let isRenewed = this.#login === undefined;
    try {
      for (let tries = 0; ; nowMs = clock.monotonicMs()) {
        if (this.#isClosed) throw new LeaseholdError("CLOSED");
        if (isCancelled() || nowMs >= endMs) throw noAnswer(failures, timeoutMs);
        if (nowMs >= nextMs) {
          newest = { turn: this.#turn, server: this.#serverOf(this.#turn) };
          const callMs = Math.min(endMs - nowMs, callMsMax);
          const untried = this.#servers.length - (tries % this.#servers.length);
          nextMs = nowMs + Math.min(callMs, Math.max(shareMsMin, (endMs - nowMs) / untried));
          tries += 1;
          calls.begin(newest, this.#call(newest.server, callMs, ask));
        }
        const ended = await calls.next(Math.min(nextMs, endMs) - nowMs);
        if (ended !== undefined && "answer" in ended) return ended.answer;
        // A cancellation says nothing about the server, and neither does the end of a pause.
        if (isCancelled() || (ended === undefined && newest === undefined)) continue;
        const { server, turn } = ended?.call ?? newest!;
        const error: unknown = ended === undefined ? serviceError(4, "Deadline exceeded") : ended.error;
        if (!isServiceError(error)) throw error;
        // A request with an expired or outdated token was not carried out.
        if (!isRenewed && isTokenOver(error.details)) {
          isRenewed = true;
          this.#isLoggedIn = false;
          tries -= 1;
          nextMs = nowMs;
          continue;
        }
        const failure = failureOf(error, server.connection.isReady);
        if (failure.kind === "refused") throw new CoreRefusal(failure, server.endpoint, error);
        failures.set(server.endpoint, failure);
        this.#pass(turn);
        if (turn !== newest?.turn) continue;
        newest = undefined;
        nextMs = clock.monotonicMs() + this.#pauseMs(tries);
      }
    } finally {
      if (cancellation !== undefined) cancellation.onCancel = undefined;
    }
  }

  async #call<T>(
    server: Server,
    callMs: number,
    ask: (server: Server, callMs: number) => Promise<T>,
  ): Promise<T> {
    await this.#logIn(server, callMs);
    return ask(server, callMs);
  }

  /** Returns a random pause once all servers have failed; otherwise 0. */
  #pauseMs(tries: number): number {
    const rounds = tries / this.#servers.length;
    return Number.isInteger(rounds) ? backOffMs(this.#world.random, rounds - 1, pauseMsBase, pauseMsMax) : 0;
  }

  #serverOf(turn: number): Server {
    return this.#servers[turn % this.#servers.length]!;
  }

  /** Moves on to the next server, unless another call has done so. */
  #pass(turn: number): void {
    if (this.#turn === turn) this.#turn = turn + 1;
  }
}

/**
 * Matches the servers' messages: the token is unknown, rights have changed since, or authentication was
 * enabled.
 */
export function isTokenOver(text: string): boolean {
  return /invalid auth token|revision of auth store is old|user name is empty/.test(text);
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "details" in error;
}
