import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import type { Room } from "leasehold/common";
import type { Connection } from "../../../http2/connection.js";
import type { RequestHead } from "../../../http2/request.js";
import type { Stream } from "../../../http2/stream.js";
import { addressOf } from "../../accounts/address-of.js";
import { Traffic } from "../traffic.js";
import { failedAtOnce, httpOnly, timeoutMs } from "./blocks.js";
import { type CodedError, Metadata, type Method, type Peer, statusCode } from "./call.js";
import { Calls, Http2Carrier } from "./http2-carrier.js";
import { Http2Socket } from "./socket.js";

const tickMs = 1_000;

/** Interval of checks for passed deadlines, ms. Clients notice their own deadlines. */
const deadlineLookMs = 50;

/** Polling interval while draining, ms. */
const leaveLookMs = 10;

/** Answers gRPC calls over HTTP/2. */
export class GrpcServer {
  readonly #streamsMax: number;
  readonly #calls: Calls;
  readonly #services = new Set<string>();
  readonly #methods = new Map<string, Method>();
  readonly #sockets = new Set<Http2Socket>();
  readonly #ticking: NodeJS.Timeout[];
  readonly traffic = new Traffic();

  /**
   * @param streamsMax concurrent streams per connection
   * @param messageBytesMax bound of one request
   * @param room bytes of calls, and of requests that no handler has taken; connections share it
   */
  constructor(streamsMax: number, messageBytesMax: number, room: Room<CodedError>) {
    this.#streamsMax = streamsMax;
    this.#calls = new Calls(messageBytesMax, room);
    this.#ticking = [
      setInterval(() => {
        for (const socket of this.#sockets) socket.tick();
      }, tickMs),
      setInterval(() => this.#endLate(), deadlineLookMs),
    ];
  }

  add(service: string, methods: Iterable<readonly [name: string, method: Method]>): void {
    this.#services.add(service);
    for (const [name, method] of methods) this.#methods.set(`/${service}/${name}`, method);
  }

  serve(socket: Socket | TLSSocket): void {
    const peer = peerOf(socket);
    this.traffic.follow(socket);
    const served = new Http2Socket(socket, this.#streamsMax, (connection, stream, head) =>
      this.#request(connection, stream, head, peer),
    );
    this.#sockets.add(served);
    socket.once("close", () => this.#sockets.delete(served));
  }

  #request(
    connection: Connection,
    stream: Stream,
    { bytes, fields, method: verb, path }: RequestHead,
    peer: Peer,
  ): void {
    const { send } = connection;
    const isGrpc = /^application\/grpc(?:$|[+;])/.test(fields.get("content-type")?.[0] ?? "");
    if (verb !== "POST" || !isGrpc) {
      send.end(stream, httpOnly(verb === "POST" ? 415 : 405));
      return;
    }
    const method = this.#methods.get(path);
    if (method === undefined) {
      send.end(stream, failedAtOnce({ code: statusCode.unimplemented, details: this.#unknown(path) }));
      return;
    }
    const deadlineMs = performance.now() + timeoutMs(fields.get("grpc-timeout")?.[0]);
    const base = { metadata: new Metadata(fields), peer, deadlineMs };
    const carrier = new Http2Carrier(this.#calls, connection, stream, method, base, bytes);
    if (stream.isRemoteEnded) carrier.data(new Uint8Array(), true);
  }

  /** Returns the method at this path, if any. */
  methodAt(path: string): Method | undefined {
    return this.#methods.get(path);
  }

  #unknown(path: string): string {
    const [, service = "", name = ""] = path.split("/", 3);
    return this.#services.has(service)
      ? `unknown method ${name} for service ${service}`
      : `unknown service ${service}`;
  }

  #endLate(): void {
    const nowMs = performance.now();
    for (const { exchange } of this.#calls.timed.values())
      if (exchange.deadlineMs <= nowMs)
        exchange.fail({ code: statusCode.deadlineExceeded, details: "context deadline exceeded" });
  }

  /** Drains: accepts no more calls, and resolves when those in progress are over, or after `ms`. */
  async leave(ms: number): Promise<void> {
    for (const socket of this.#sockets) socket.leave();
    const endMs = performance.now() + ms;
    while (this.#sockets.size > 0 && performance.now() < endMs) await sleep(leaveLookMs);
    for (const ticking of this.#ticking) clearInterval(ticking);
  }
}

function peerOf(socket: Socket | TLSSocket): Peer {
  const address = addressOf(socket);
  const name: unknown =
    "getPeerCertificate" in socket
      ? // A closed socket has none.
        (socket.getPeerCertificate() as { subject?: { CN?: unknown } } | null)?.subject?.CN
      : "";
  return { address, commonName: typeof name === "string" ? name : "" };
}
