import { ballotsPerMs, numberAt } from "../../../packages/leasehold/src/flease/protocol/ballot.js";
import { Kind, LeaseState, Refusal } from "../../../packages/leasehold/src/flease/protocol/message.js";
import type { Message } from "../../../packages/leasehold/src/flease/protocol/message.js";
import type { View } from "../../../packages/leasehold/src/flease/views/view.js";

/** The wall clock at time 0 of a script. Times and ballots are printed relative to it. */
export const startWallMs = Date.UTC(2030, 0, 1);

/** A ballot number as `milliseconds.counter`; 0 is below all ballots. */
export function ballotText(number: number): string {
  if (number === 0) return "none";
  const relative = number - numberAt(startWallMs);
  const ms = Math.floor(relative / ballotsPerMs);
  return `${ms}.${relative - ms * ballotsPerMs}`;
}

/** A wall clock time, in milliseconds since the start of the script. */
export function timeText(wallMs: number): string {
  return String(wallMs - startWallMs);
}

function nameOf<T extends number>(table: Record<string, T>, value: T): string {
  return Object.entries(table).find(([, each]) => each === value)?.[0] ?? String(value);
}

export function printRequest(message: Message): string {
  const ballot = ballotText(message.number);
  switch (message.kind) {
    case Kind.read:
      return `READ ${ballot}`;
    case Kind.write:
      return `WRITE ${ballot}/${message.sequence} until ${timeText(message.until)}`;
    case Kind.acquire:
      return `ACQ ${ballot} until ${timeText(message.until)}`;
    default:
      return `REL ${ballot}/${message.sequence}`;
  }
}

export function printReply(reply: Message): string {
  const ballot = ballotText(reply.number);
  if (reply.kind === Kind.promise) return `PROMISE ${ballot}, ${leaseText(reply)}`;
  if (reply.kind === Kind.ack) return `ACK ${ballot}/${reply.sequence}`;
  if (reply.refusal === Refusal.promised) return `NACK ${ballot}: promised ${ballotText(reply.promised)}`;
  if (reply.refusal === Refusal.held) return `NACK ${ballot}: held, ${leaseText(reply)}`;
  return `NACK ${ballot}: ${nameOf(Refusal, reply.refusal)}`;
}

function leaseText(reply: Message): string {
  if (reply.leaseState === LeaseState.none) return "no lease";
  const state = nameOf(LeaseState, reply.leaseState);
  return `lease of ${reply.leaseOwner} until ${timeText(reply.leaseExpiresWallMs)} (${state})`;
}

/** A view as its number and members; a joint view with the members before and after. */
export function printView({ number, members, before }: View): string {
  if (before === undefined) return `view ${number} of ${members.join(" ")}`;
  return `joint view ${number} of ${before.members.join(" ")} and ${members.join(" ")}`;
}
