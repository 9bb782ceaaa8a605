import type { UnaryCall } from "../../wire/rpc/call.js";

type AnyCall = Pick<UnaryCall, "deadlineMs" | "metadata" | "peer">;

/**
 * Timeout of a request without a deadline, beside two election timeouts: etcd's figures. It covers the loss
 * of a leader and one election.
 */
const requestMs = 5_000;

/** On the clock by which requests are judged. */
export function deadlineOf(call: Pick<AnyCall, "deadlineMs">, electionMs: number): number {
  return Math.min(call.deadlineMs, performance.now() + requestMs + 2 * electionMs);
}

/** A client may ask for a refusal instead of waiting, if the server knows no leader. */
export function asksForLeader(call: Pick<AnyCall, "metadata">): boolean {
  return call.metadata.get("hasleader").includes("true");
}

/** The caller of a request: its key for memory accounting, and its credentials. */
export interface Caller {
  readonly client: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** From its certificate; empty if it has shown none. */
  readonly user?: string | undefined;
}

/** Metadata passed on when this server makes a call for another call. */
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
