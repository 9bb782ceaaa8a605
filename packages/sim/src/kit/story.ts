import { Kind } from "leasehold/inner/flease/protocol/message.js";
import type { Message } from "leasehold/inner/flease/protocol/message.js";

const kindNames = [
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

/** One message as a line of a story. */
export function describe(message: Message): string {
  const { kind, number, sequence, until, duration, refusal, leaseState, leaseOwner, leaseExpiresWallMs } =
    message;
  const ballot = `${kindNames[kind]} ${message.resource} (${number},${sequence})`;
  if (kind === Kind.write || kind === Kind.acquire) return `${ballot} until ${until} for ${duration}`;
  if (kind <= Kind.query || kind === Kind.ack) return ballot;
  const lease =
    leaseState === 0 ? "" : ` lease of ${leaseOwner} until ${leaseExpiresWallMs} state ${leaseState}`;
  return kind === Kind.nack
    ? `${ballot} why ${refusal} promised ${message.promised}${lease}`
    : ballot + lease;
}
