import type { CoreError } from "../../../state/errors.js";
import type { Status, UnaryCall } from "../../wire/rpc/call.js";

type AnyCall = Pick<UnaryCall, "deadlineMs" | "metadata" | "peer">;

/**
 * How long a request may take when its client has set no deadline, beside two election timeouts: etcd's
 * figures. A leader can be lost and found once in it.
 */
const requestMs = 5_000;

/** On the clock that requests are judged by. */
export function deadlineOf(call: Pick<AnyCall, "deadlineMs">, electionMs: number): number {
  return Math.min(call.deadlineMs, performance.now() + requestMs + 2 * electionMs);
}

/** A client may ask to be refused by a server that knows no leader, instead of waiting. */
export function asksForLeader(call: Pick<AnyCall, "metadata">): boolean {
  return call.metadata.get("hasleader").includes("true");
}

export function grpcError(error: CoreError): Status {
  return { code: error.code, details: error.message };
}

/** For whom a call is made: who shares its room, and what it brings to be let in. */
export interface Caller {
  readonly client: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** By its certificate; empty if it has shown none. */
  readonly user?: string | undefined;
}

/** What a call that this server makes of another hands on of its metadata. */
const handedOn = ["token", "authorization"];

/** Who shares the room for requests, streams and answers with itself only. */
export function clientOf(call: Pick<AnyCall, "peer">): string {
  return call.peer.address;
}

export function callerOf(call: Pick<AnyCall, "metadata" | "peer">): Caller {
  const found = handedOn.flatMap((name) =>
    call.metadata
      .get(name)
      .slice(0, 1)
      .map((value) => [name, value]),
  );
  const { address, commonName } = call.peer;
  return { client: address, metadata: Object.fromEntries(found) as Caller["metadata"], user: commonName };
}
