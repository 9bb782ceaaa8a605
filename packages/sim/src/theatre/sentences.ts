import { Kind, LeaseState, Refusal } from "leasehold/inner/flease/protocol/message.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";
import { nodeIdOf } from "leasehold/inner/flease/protocol/ballot.js";

/** The names of messages, by their kinds. */
export const kindNames = [
  "",
  "READ",
  "WRITE",
  "ACQ",
  "REL",
  "QUERY",
  "PROMISE",
  "ACK",
  "NACK",
  "STATE",
  "HINT",
  "PASS",
];

/** The sentence for a request that a node sends. */
export function sentText(name: string, { kind, resource, renewing }: Message): string | undefined {
  if (kind === Kind.read)
    return `${name} asks the members for ${resource}: promise my ballot, and tell me what you know.`;
  if (kind === Kind.acquire) return `${name} asks the members for ${resource} in one round trip.`;
  if (kind === Kind.write)
    return renewing
      ? `${name} asks the members to extend its lease of ${resource}.`
      : `${name} asks the members to guard its lease of ${resource}.`;
  if (kind === Kind.release) return `${name} releases ${resource} and tells the members.`;
  return undefined;
}

const refusals: Readonly<Record<number, string>> = {
  [Refusal.promised]: "it has promised a newer ballot",
  [Refusal.stale]: "a newer message has overtaken this one",
  [Refusal.outOfBounds]: "its time is further ahead than clocks may differ",
  [Refusal.otherView]: "it speaks of another list of members",
  [Refusal.full]: "it keeps as many leases as it may",
  [Refusal.barred]: "that lease was broken",
  [Refusal.busy]: "it has too much to do",
};

/** The sentence for a request that a member has handled. */
export function handledText(
  member: string,
  request: Message,
  reply: Message | undefined,
  isReady: boolean,
): string | undefined {
  const who = nodeIdOf(request.owner);
  if (!isReady) return `${member} stays silent: it restarted and may have forgotten what it guarded.`;
  if (request.kind === Kind.release) return `${member} ends its guard: ${who} has released the lease.`;
  if (reply?.kind === Kind.promise) return `${member} promises ${who}'s ballot. ${knows(member, reply)}`;
  if (reply?.kind === Kind.ack)
    return `${member} guards ${who}'s lease from now on, and will refuse all others.`;
  if (reply?.kind !== Kind.nack) return undefined;
  const why =
    reply.refusal === Refusal.held
      ? `${nodeIdOf(reply.leaseOwner)}'s lease may still run`
      : (refusals[reply.refusal] ?? "it cannot");
  return `${member} refuses ${who}: ${why}.`;
}

function knows(member: string, reply: Message): string {
  if (reply.leaseState === LeaseState.none) return `${member} knows of no lease.`;
  const owner = nodeIdOf(reply.leaseOwner);
  const state = reply.leaseState === LeaseState.released ? "was released" : "is over";
  return reply.leaseState === LeaseState.live
    ? `It guards ${owner}'s lease.`
    : `The lease of ${owner} ${state}.`;
}
