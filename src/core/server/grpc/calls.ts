import type { ServerUnaryCall } from "@grpc/grpc-js";
import type { CoreError } from "../../state/errors.js";

type AnyCall = Pick<ServerUnaryCall<unknown, unknown>, "getDeadline" | "metadata">;

/**
 * How long a request may take when its client has set no deadline, beside two election timeouts: etcd's
 * figures. A leader can be lost and found once in it.
 */
const requestMs = 5_000;

/** On the clock that requests are judged by. */
export function deadlineOf(call: AnyCall, electionMs: number): number {
  const deadline = call.getDeadline();
  const leftMs = (deadline instanceof Date ? deadline.getTime() : deadline) - Date.now();
  return performance.now() + Math.min(leftMs, requestMs + 2 * electionMs);
}

/** A client may ask to be refused by a server that knows no leader, instead of waiting. */
export function asksForLeader(call: AnyCall): boolean {
  return call.metadata.get("hasleader").includes("true");
}

/** What grpc-js makes a status of. */
export function grpcError(error: CoreError): { code: number; details: string } {
  return { code: error.code, details: error.message };
}
