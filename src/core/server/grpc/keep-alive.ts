import type { LeaseKeepAliveRequest } from "../../gen/etcd/rpc_pb.js";
import type { Answer } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import type { CoreHost } from "../host.js";
import { type Stream, type Streams, deadlineOf, fail } from "./calls.js";

/**
 * A stream of refreshes, each answered before the next is looked at: what has piled up at a slow client is not refreshed from
 * memory here. It stays open whatever becomes of the leases: a lease that has ended is answered with a TTL of 0.
 */
export function keepAliveHandler(host: CoreHost, streams: Streams, electionMs: number) {
  return (stream: Stream): void => {
    if (!streams.admit(stream)) return;
    let asked: number | undefined;
    let isEnding = false;
    stream.on("cancelled", () => {
      if (asked !== undefined) host.cancel(asked);
    });
    const settle = (result: Answer["result"]) => {
      asked = undefined;
      if (result instanceof CoreError) fail(stream, result);
      else if (!stream.cancelled && !stream.writableEnded) stream.write(result, () => stream.resume());
      if (isEnding) stream.end();
    };
    stream.on("data", (request: LeaseKeepAliveRequest) => {
      stream.pause();
      asked = host.request({ kind: "leaseKeepAlive", request }, deadlineOf(stream, electionMs), settle);
    });
    // The client asks no more; what it has asked is answered.
    stream.on("end", () => {
      isEnding = true;
      if (asked === undefined) stream.end();
    });
  };
}
