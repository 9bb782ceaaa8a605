import { randomUUID } from "node:crypto";
import type { ServerUnaryCall } from "@grpc/grpc-js";
import type { CoreError } from "../../state/errors.js";

type AnyCall = Pick<ServerUnaryCall<unknown, unknown>, "getDeadline" | "metadata">;
type Peer = Pick<ServerUnaryCall<unknown, unknown>, "getPeer" | "metadata">;
type Certified = Pick<ServerUnaryCall<unknown, unknown>, "getAuthContext">;

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

/** For whom a call is made: who shares its room, and what it brings to be let in. */
export interface Caller {
  readonly client: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** By its certificate; empty if it has shown none. */
  readonly user?: string | undefined;
}

/** What a call that this server makes of another hands on of its metadata. */
const handedOn = ["token", "authorization"];

/** Calls of this server to itself (`local.ts`) say for whom they are: nobody else knows this word. */
const ourWord = randomUUID();
const clientHeader = "leasehold-client";

/** What grpc-js calls a peer that has no address: a connection in memory. */
const noPeer = "unknown";

/** Who shares the room for requests, streams and answers with itself only. */
export function clientOf(call: Peer): string {
  const peer = call.getPeer();
  return peer === noPeer ? (ourCall(call)?.client ?? noPeer) : peer;
}

/** Of the one at the other end of the connection, who has shown a certificate; empty otherwise. */
export function commonNameOf(call: Peer & Certified): string {
  if (call.getPeer() === noPeer) return ourCall(call)?.user ?? "";
  const name: unknown = call.getAuthContext().sslPeerCertificate?.subject.CN;
  return typeof name === "string" ? name : "";
}

/** Of a call that this server makes of itself: for whom it is. */
function ourCall(call: Peer): { readonly client: string; readonly user: string } | undefined {
  const [word, client, user = ""] = String(call.metadata.get(clientHeader)[0] ?? "").split(" ");
  if (word !== ourWord || client === undefined) return undefined;
  return { client, user: decodeURIComponent(user) };
}

export function callerOf(call: Peer & Certified): Caller {
  const found = handedOn.map((name) => [name, call.metadata.get(name)[0]] as const);
  const metadata = Object.fromEntries(found.filter(([, value]) => typeof value === "string"));
  return { client: clientOf(call), metadata: metadata as Caller["metadata"], user: commonNameOf(call) };
}

export function localMetadata({ client, metadata, user = "" }: Caller): Record<string, string> {
  return { ...metadata, [clientHeader]: `${ourWord} ${client} ${encodeURIComponent(user)}` };
}
