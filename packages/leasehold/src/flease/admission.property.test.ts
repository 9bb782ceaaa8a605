import fc from "fast-check";
import { expect, test } from "vitest";
import { at, benchSettings } from "../../../../test/support/flease-bench.js";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { numberAt } from "./protocol/ballot.js";
import { Kind, Message, Refusal } from "./protocol/message.js";
import { FleasePeer } from "./peer.js";

// Participants send arbitrary requests to a member that may be late. Its own knowledge alone bounds what it
// admits.

const [participants, resources] = [4, 2];
/** `hintPatienceMsMin` of the peer. */
const patienceMs = 50;

interface Act {
  readonly from: number;
  readonly resource: number;
  readonly kind: typeof Kind.read | typeof Kind.write | typeof Kind.acquire | typeof Kind.release;
  readonly waiting: boolean;
  readonly renewing: boolean;
  /** The ballot among its own for this resource: 0 is a new one, 1 the last, and so on. */
  readonly ballot: number;
  readonly afterMs: number;
  /** Whether the member is late from here on. */
  readonly late?: boolean;
}

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.record(
    {
      from: fc.nat({ max: participants - 1 }),
      resource: fc.nat({ max: resources - 1 }),
      kind: fc.constantFrom(Kind.read, Kind.write, Kind.acquire, Kind.release),
      waiting: fc.boolean(),
      renewing: fc.boolean(),
      ballot: fc.nat({ max: 2 }),
      afterMs: fc.oneof(
        { weight: 6, arbitrary: fc.nat({ max: 4 }) },
        { weight: 1, arbitrary: fc.nat({ max: 400 }) },
      ),
      late: fc.boolean(),
    },
    { requiredKeys: ["from", "resource", "kind", "waiting", "renewing", "ballot", "afterMs"] },
  ),
  { minLength: 20, maxLength: 120 },
);

/** The history of one resource, as observed from outside. */
interface Seen {
  notifiedPeer: number;
  notifiedMs: number;
  readonly waiting: Set<number>;
  /** The last ballot that was promised by a READ and not yet written. */
  promised: string;
}

function run(script: readonly Act[]): number {
  const seen = Array.from({ length: resources }, (): Seen => {
    return { notifiedPeer: -1, notifiedMs: -Infinity, waiting: new Set(), promised: "" };
  });
  let [ms, late, sinceLook, overtaken, checked] = [5_000, false, 0, 0, 0];
  const notify = (peer: number, { kind, resource }: Message): boolean => {
    if (kind === Kind.hint) Object.assign(seen[Number(resource)]!, { notifiedPeer: peer, notifiedMs: ms });
    return true;
  };
  const medium = { send: () => undefined, reaches: () => true, notify };
  const { mono, wall } = at(0);
  const options = { owner: "a.1", seed: 1, acceptor: true };
  const peer = new FleasePeer(benchSettings(), options, mono, wall, medium, () => undefined);
  const look = () => {
    for (let looks = 0; looks < 100; looks += 1) peer.admission.look(late ? Infinity : 0);
    sinceLook = 0;
  };
  const reading = () => peer.read(at(ms).mono, at(ms).wall);
  peer.maintain(reading());
  const ballots = new Map<string, number[]>();
  let drawn = 0;
  for (const act of script) {
    ms += act.afterMs;
    if (act.late !== undefined && act.late !== late) {
      late = act.late;
      look();
    }
    const owner = `p${act.from}.1`;
    const of = `${owner} ${act.resource}`;
    const mine = ballots.get(of) ?? [];
    const number = mine.at(-act.ballot) ?? numberAt(at(ms).wall) + (drawn += 1);
    if (act.ballot === 0 || mine.length < act.ballot) ballots.set(of, [...mine, number]);
    const state = seen[act.resource]!;
    const now = reading();
    const entry = peer.acceptor!.entry(`${act.resource}`);
    const holds = entry?.leaseOwner === owner && !peer.acceptor!.isOver(entry, now);
    const wasPromised = act.kind === Kind.write && state.promised === `${owner} ${number}`;
    const isNotified = state.notifiedPeer !== -1 && ms < state.notifiedMs + patienceMs;
    const standsInLine = state.waiting.has(act.from);
    const { kind, waiting, renewing } = act;
    const request = Object.assign(new Message(), { view: 1, resource: `${act.resource}`, owner, number });
    const lease = { until: at(ms + 300).wall, duration: 300, sequence: (drawn += 1) };
    Object.assign(request, { kind, waiting, renewing }, kind === Kind.read ? {} : lease);
    const reply = new Message();
    // A release has no reply.
    const answer = peer.receive(act.from, request, now, reply) ? reply.kind : undefined;
    const granted = answer === Kind.promise || answer === Kind.ack;
    if (granted && isNotified) {
      checked += 1;
      if (!standsInLine && !holds && !wasPromised) overtaken += 1;
    }
    if (late && kind !== Kind.release) {
      if (holds || wasPromised) expect(reply.refusal).not.toBe(Refusal.busy);
      else if (reply.refusal !== Refusal.busy) sinceLook += 1;
    }
    if (answer === Kind.promise) state.promised = `${owner} ${number}`;
    if (answer === Kind.ack) {
      Object.assign(state, { promised: "", notifiedPeer: -1 });
      state.waiting.delete(act.from);
    }
    if (answer === Kind.nack && reply.refusal === Refusal.held && waiting) state.waiting.add(act.from);
    // A release with `waiting` puts its sender on the list.
    if (kind === Kind.release && waiting) state.waiting.add(act.from);
    expect(overtaken).toBe(0);
    // Sixteen are always admitted, and few besides: among so few senders none counts as light.
    expect(sinceLook).toBeLessThanOrEqual(20);
  }
  return checked;
}

const check = (numRuns: number, seed?: number) => {
  let checked = 0;
  const property = fc.property(acts, (script) => {
    checked += run(script);
  });
  fc.assert(property, { numRuns, endOnFailure: true, ...(seed !== undefined && { seed }) });
  return checked;
};

test("a member admits requests for known leases, few others while it is late, and none ahead of a notified waiter", () => {
  expect(check(200)).toBeGreaterThan(20);
});

test.each<[string, Partial<Faults>]>([
  ["believes what claims to renew", { renewingIsBelieved: true }],
  ["lets in every WRITE", { writesAreAdmitted: true }],
  ["lets the last holder write in the ballot that it has released", { releasedBallotGoesOn: true }],
])("when it %s, the property finds it", (_what, planted) => {
  withFaults(planted, () => expect(() => check(500, 1)).toThrow("Property failed"));
});
