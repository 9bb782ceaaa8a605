import * as fc from "fast-check";
import { Kind, LeaseState, Message, Refusal } from "../../packages/leasehold/src/flease/protocol/message.js";

/** Replaces control characters, which names must not contain. */
export const printable = (text: string): string => text.replaceAll(/\p{Cc}/gu, "_");

const text = (bytesMax: number) =>
  fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 40 })
    .map(printable)
    .filter((value) => Buffer.byteLength(value) <= bytesMax);
const u32 = fc.nat({ max: 0xffff_ffff });
const whole = fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER));
const time = fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true }).map((value) => value + 0);

const lease = fc.oneof(
  fc.constant({ leaseState: LeaseState.none }),
  fc.record({
    leaseState: fc.constantFrom(LeaseState.live, LeaseState.over, LeaseState.released),
    leaseOwner: text(255),
    leaseNumber: whole,
    leaseSequence: u32,
    leaseExpiresWallMs: time,
    leaseToken: whole,
  }),
);

const common = { instance: u32, number: whole, sequence: u32 };
const request = { ...common, resource: text(512), owner: fc.constant("n1.0123456789abcdef") };

const withoutLease = fc.constant({});

/** The fields of a message of each kind, in two parts. */
const parts = fc.oneof(
  fc.tuple(
    fc.record({ kind: fc.constantFrom(Kind.read, Kind.release, Kind.query), ...request }),
    withoutLease,
  ),
  fc.tuple(
    fc.record({
      kind: fc.constantFrom(Kind.write, Kind.acquire),
      ...request,
      until: time,
      duration: time,
      token: whole,
    }),
    withoutLease,
  ),
  fc.tuple(fc.record({ kind: fc.constant(Kind.ack), ...common }), withoutLease),
  fc.tuple(fc.record({ kind: fc.constant(Kind.promise), ...common }), lease),
  fc.tuple(
    fc.record({
      kind: fc.constant(Kind.nack),
      ...common,
      refusal: fc.constantFrom(...Object.values(Refusal)),
      fullBy: fc.string({ maxLength: 60, unit: "binary" }).map(printable),
      promised: whole,
    }),
    lease,
  ),
  fc.tuple(fc.record({ kind: fc.constant(Kind.state), ...common, promised: whole }), lease),
);

/**
 * Every message that one side may send in a batch of view 1, of any kind. Requests come from one owner. The
 * token of an acquisition is its number, and that of a lease is at most its number.
 */
export const anyMessage: fc.Arbitrary<Message> = parts.map(([fields, kept]) => {
  const message = Object.assign(new Message(), { view: 1 }, fields, kept);
  message.token = message.kind === Kind.acquire ? message.number : Math.min(message.token, message.number);
  if (message.refusal !== Refusal.full) message.fullBy = "";
  message.leaseToken = Math.min(message.leaseToken, message.leaseNumber);
  return message;
});
