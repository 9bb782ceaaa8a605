import type { UnaryCall } from "../../wire/rpc/call.js";

type AnyCall = Pick<UnaryCall, "deadlineMs" | "metadata" | "peer">;

/**
 * Timeout of a request without a deadline, in addition to two election timeouts, as in etcd. It covers the
 * loss of a leader and one election.
 */
const requestMs = 5_000;

/** The deadline on the clock used for requests. */
export function deadlineOf(call: Pick<AnyCall, "deadlineMs">, electionMs: number): number {
  return Math.min(call.deadlineMs, performance.now() + requestMs + 2 * electionMs);
}

/** Whether the client asks to be refused instead of waiting if the server knows no leader. */
export function asksForLeader(call: Pick<AnyCall, "metadata">): boolean {
  return call.metadata.get("hasleader").includes("true");
}

/** The caller of a request: its key for memory accounting, and its credentials. */
export interface Caller {
  readonly client: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** From its certificate; empty without one. */
  readonly user?: string | undefined;
}

/** Metadata passed on when this server makes a call on behalf of another call. */
const handedOn = ["token", "authorization"];

/** The client key for memory accounting: one per connection. */
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
