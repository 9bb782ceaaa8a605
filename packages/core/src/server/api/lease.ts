import type { LeaseKeepAliveRequest } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Answer } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import type { CoreHost } from "../../host/host.js";
import type { ServerStream } from "../wire/rpc/call.js";
import type { Ask } from "./calls/ask.js";
import { clientOf, deadlineOf } from "./calls/calls.js";
import type { UnaryHandlers } from "./calls/header.js";
import { type Streams, fail } from "./calls/streams.js";

/** etcd's Lease service, except its stream of refreshes. */
export function leaseHandlers(ask: Ask): UnaryHandlers {
  return {
    LeaseGrant: ask("leaseGrant"),
    LeaseRevoke: ask("leaseRevoke"),
    LeaseTimeToLive: ask("leaseTimeToLive"),
    LeaseLeases: ask("leaseLeases"),
  };
}

/**
 * Bound of one stream's refreshes that are in progress or have unsent answers; beyond it no more are read.
 * Enough that a client with ten thousand leases loses no time. The rest stays at the client, so it is never
 * refreshed from memory here (etcd 21638).
 */
const underWayMax = 1_024;

interface Refresh {
  id: number;
  result: Answer["result"] | undefined;
}

type Host = Pick<CoreHost, "cancel" | "request">;

/**
 * A stream of refreshes, processed concurrently and answered in order, on which clients rely. It stays open
 * even if a lease has ended: the answer then has a TTL of 0.
 */
export function keepAliveHandler(host: Host, streams: Pick<Streams, "admit">, electionMs: number) {
  return (stream: ServerStream): void => {
    if (streams.admit(stream)) new KeepAlives(host, stream, electionMs).begin();
  };
}

class KeepAlives {
  readonly #host: Host;
  readonly #stream: ServerStream;
  readonly #electionMs: number;
  readonly #client: string;
  /** In order of requests. */
  #waiting: Refresh[] = [];
  /** Number of answers not sent yet. */
  #unsent = 0;
  #isEnding = false;
  #isOver = false;

  constructor(host: Host, stream: ServerStream, electionMs: number) {
    this.#host = host;
    this.#stream = stream;
    this.#electionMs = electionMs;
    this.#client = clientOf(stream);
  }

  begin(): void {
    this.#stream.whenOver(() => this.#end());
    const take = (request: unknown) => {
      if (request instanceof CoreError) fail(this.#stream, request);
      else this.#refresh(request as LeaseKeepAliveRequest);
    };
    // The client sends no more; pending requests are still answered.
    this.#stream.listen(take, () => {
      this.#isEnding = true;
      this.#answer();
    });
  }

  #refresh(request: LeaseKeepAliveRequest): void {
    if (this.#isOver) return;
    const refresh: Refresh = { id: 0, result: undefined };
    this.#waiting.push(refresh);
    if (this.#isFull) this.#stream.pause();
    const deadlineMs = deadlineOf(this.#stream, this.#electionMs);
    const asked = { kind: "leaseKeepAlive", request } as const;
    refresh.id = this.#host.request(this.#client, asked, deadlineMs, (result) => {
      refresh.result = result;
      this.#answer();
    });
  }

  /** Sends the answers that are next in order. */
  #answer(): void {
    while (!this.#isOver && this.#waiting[0]?.result !== undefined) {
      const { result } = this.#waiting.shift()!;
      if (result instanceof CoreError) {
        fail(this.#stream, result);
        this.#end();
        return;
      }
      this.#unsent += 1;
      this.#stream.write(result, () => this.#sent());
    }
    if (this.#isEnding && this.#waiting.length === 0) this.#stream.end();
  }

  #sent(): void {
    this.#unsent -= 1;
    if (!this.#isOver && !this.#isFull) this.#stream.resume();
  }

  get #isFull(): boolean {
    return this.#waiting.length + this.#unsent >= underWayMax;
  }

  /** The client has gone: pending requests must refresh nothing. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const { id, result } of this.#waiting.splice(0)) if (result === undefined) this.#host.cancel(id);
  }
}
