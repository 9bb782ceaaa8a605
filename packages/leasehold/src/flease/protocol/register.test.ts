import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  ask,
  at,
  benchSettings,
  readOf,
  readyAcceptor,
  releaseOf,
  wordOf,
  writeOf,
} from "../../../../../test/support/flease-bench.js";
import { Acceptor } from "./acceptor.js";
import { Kind } from "./message.js";
import type { Message } from "./message.js";
import { type Faults, withFaults } from "../../../../../test/planted/switches.js";

/**
 * Three acceptors are one round-based register (Boichat, Dutta, Frølund, Guerraoui, "Deconstructing Paxos").
 * Its five properties are the lemmas R1 to R5 of the report's proof. These tests check them on the real
 * acceptors under any interleaving of messages, each of which may arrive late, repeatedly or never.
 *
 * Our register differs from the paper's in three ways, and the properties are worded accordingly:
 * - A ballot is a number and an owner. Of two ballots with equal numbers the later arrival is refused, so
 *   "higher" becomes "not lower" wherever the other ballot belongs to another owner. A repeated request is
 *   the same operation.
 * - Net G: while a lease runs, requests of others are refused as `held`. So there are more aborts than in the
 *   paper (R1, R2), and R5 says less about reads that commit.
 * - The value is a lease, and the value of a ballot may end later than written: an unreleased lease of the
 *   same owner is never shortened. So R4 and R5 speak of its owner, its ballot, and an end that is not too
 *   early.
 */

const nowMs = 40;
const majority = 2;

interface Operation {
  readonly request: Message;
  readonly ballotMs: number;
  readonly invokedAt: number;
  /** The answers of the three acceptors, the first one of each. */
  readonly answers: (Message | undefined)[];
  committedAt: number;
}

/** The outcome of every operation of one run, and the refused ones. */
interface History {
  readonly operations: Operation[];
  readonly releases: number;
}

const isRead = ({ request }: Operation) => request.kind === Kind.read;
const isOther = (left: Operation, right: Operation) =>
  left.request.owner !== right.request.owner || left.request.number !== right.request.number;

/** A step of a run: a new request, the arrival of one, a release, or the loss of an acceptor's memory. */
type Step =
  | { readonly invoke: number; readonly kind: Kind; readonly sequence: number }
  | { readonly deliver: number; readonly to: readonly number[] }
  | { readonly release: number; readonly to: number }
  | { readonly restart: number };

/** Owners and times of the ballots in a run: no two ballots are equal, but their numbers may be. */
const ballots = fc.uniqueArray(
  fc.record({ owner: fc.constantFrom("p.1", "q.1", "s.1"), ms: fc.integer({ min: 1, max: 8 }) }),
  { minLength: 2, maxLength: 6, selector: ({ owner, ms }) => `${owner} ${ms}` },
);
type Ballots = readonly { readonly owner: string; readonly ms: number }[];

function stepsOf(releases: boolean, restarts: boolean): fc.Arbitrary<Step[]> {
  const kinds = fc.constantFrom(Kind.read, Kind.read, Kind.write, Kind.acquire);
  const invoke = fc.record({ invoke: fc.nat(5), kind: kinds, sequence: fc.nat(1) });
  // Favours the newest requests for arrival.
  const deliver = fc.record({ deliver: fc.nat(4), to: fc.subarray([0, 1, 2], { minLength: 1 }) });
  const release = fc.record({ release: fc.nat(5), to: fc.nat(2) });
  const restart = fc.record({ restart: fc.nat(2) });
  return fc.array(
    fc.oneof(
      { weight: 8, arbitrary: invoke },
      { weight: 16, arbitrary: deliver },
      { weight: releases ? 2 : 0, arbitrary: release },
      { weight: restarts ? 1 : 0, arbitrary: restart },
    ),
    { minLength: 10, maxLength: 40, size: "max" },
  );
}

function run(ballots: Ballots, steps: readonly Step[]): History {
  const settings = benchSettings();
  const acceptors = [readyAcceptor(), readyAcceptor(), readyAcceptor()];
  const operations: Operation[] = [];
  let [time, releases] = [nowMs, 0];
  for (const [index, step] of steps.entries()) {
    if ("invoke" in step) {
      const { owner, ms } = ballots[step.invoke % ballots.length]!;
      const sequence = step.kind === Kind.write ? step.sequence : 0;
      const write = { ...writeOf(owner, ms, sequence, 400 + 20 * ms + sequence), kind: step.kind };
      operations.push({
        request: step.kind === Kind.read ? readOf(owner, ms) : write,
        ballotMs: ms,
        invokedAt: index,
        answers: [undefined, undefined, undefined],
        committedAt: Infinity,
      });
    } else if ("release" in step) {
      const { owner, ms } = ballots[step.release % ballots.length]!;
      ask(acceptors[step.to]!, releaseOf(owner, ms, 2), at(time));
      releases += 1;
    } else if ("restart" in step) {
      acceptors[step.restart] = new Acceptor(settings, at(time));
      time += settings.waitWallMs;
      for (const acceptor of acceptors) acceptor.wake(at(time));
    } else if (operations.length > 0) {
      const operation = operations.at(-1 - (step.deliver % operations.length))!;
      for (const to of step.to) {
        const reply = ask(acceptors[to]!, operation.request, at(time));
        operation.answers[to] ??= reply;
      }
      const granted = operation.answers.filter((answer) => answer !== undefined && answer.kind !== Kind.nack);
      if (granted.length >= majority) operation.committedAt = Math.min(operation.committedAt, index);
    }
  }
  return { operations, releases };
}

const refusals = (operation: Operation) =>
  operation.answers.filter((answer) => answer?.kind === Kind.nack).map(wordOf);

const someOther = (history: History, than: Operation, holds: (other: Operation) => boolean) =>
  history.operations.some((other) => isOther(other, than) && holds(other));

/**
 * R1: a READ is refused only if there is another ballot that is not lower, or the unfinished lease of another
 * owner.
 */
function readAbort(history: History): boolean {
  return history.operations.filter(isRead).every((read) =>
    refusals(read).every((why) => {
      if (why === "promised") return someOther(history, read, (other) => other.ballotMs >= read.ballotMs);
      if (why !== "held") return false;
      return someOther(
        history,
        read,
        (other) => !isRead(other) && other.request.owner !== read.request.owner,
      );
    }),
  );
}

/**
 * R2: the same for a WRITE. In the paper only higher ballots refuse it; here an equal number does as well.
 * `stale` is a refusal in the paper's sense too: the owner went on to a later write, or has released this
 * one.
 */
function writeAbort(history: History): boolean {
  return history.operations.every((write) => {
    if (isRead(write)) return true;
    const { owner } = write.request;
    return refusals(write).every((why) => {
      if (why === "promised") return someOther(history, write, (other) => other.ballotMs >= write.ballotMs);
      if (why === "held")
        return someOther(history, write, (other) => !isRead(other) && other.request.owner !== owner);
      if (why !== "stale") return false;
      const later = history.operations.some(
        ({ request }) =>
          request.owner === owner &&
          request.kind !== Kind.read &&
          (request.number - write.request.number || request.sequence - write.request.sequence) > 0,
      );
      return later || history.releases > 0;
    });
  });
}

/** R3: once a ballot has committed an operation, no other ballot commits one unless it is higher. */
function readWriteCommit(history: History): boolean {
  return history.operations.every(
    (first) =>
      !someOther(
        history,
        first,
        (later) =>
          later.invokedAt > first.committedAt &&
          later.ballotMs <= first.ballotMs &&
          later.committedAt !== Infinity,
      ),
  );
}

/**
 * R4: a lease that is read was written before, in a lower ballot or in the reader's own, and it ends as
 * written.
 */
function readCommit(history: History): boolean {
  return history.operations.filter(isRead).every((read) =>
    read.answers.every((answer) => {
      if (answer?.kind !== Kind.promise || answer.leaseOwner === "") return true;
      if (answer.leaseNumber > read.request.number) return false;
      const writes = history.operations.filter(
        (other) => !isRead(other) && other.request.owner === answer.leaseOwner,
      );
      return (
        writes.some((write) => write.request.number === answer.leaseNumber) &&
        writes.some((write) => write.request.until === answer.leaseExpiresWallMs)
      );
    }),
  );
}

/**
 * R5: once a WRITE has committed, a READ with a higher ballot that commits learns of that lease or of one
 * from a ballot in between, and its end is not too early. With net G no other owner's READ commits at all
 * meanwhile.
 */
function writeCommit(history: History, netG: boolean): boolean {
  const committed = history.operations.filter(({ committedAt }) => committedAt !== Infinity);
  return committed.every((write) =>
    committed.every((read) => {
      if (isRead(write) || !isRead(read) || read.ballotMs <= write.ballotMs) return true;
      if (netG && read.request.owner !== write.request.owner) return false;
      return read.answers.some(
        (answer) =>
          answer?.kind === Kind.promise &&
          answer.leaseNumber >= write.request.number &&
          (answer.leaseOwner !== write.request.owner || answer.leaseExpiresWallMs >= write.request.until),
      );
    }),
  );
}

interface Conditions {
  readonly planted?: Partial<Faults>;
  readonly releases?: boolean;
  readonly restarts?: boolean;
}

/** Whether a lemma holds in every run; "says nothing" when hardly any operation committed. */
function verdictOn(lemma: (history: History) => boolean, conditions: Conditions = {}): string {
  const { planted = {}, releases = false, restarts = false } = conditions;
  let committed = 0;
  const property = fc.property(ballots, stepsOf(releases, restarts), (chosen, steps) => {
    const history = run(chosen, steps);
    committed += history.operations.filter(({ committedAt }) => committedAt !== Infinity).length;
    return lemma(history);
  });
  const numRuns = 1_000;
  const result = withFaults(planted, () => fc.check(property, { numRuns, seed: 20_261_121 }));
  if (result.failed) return "fails";
  return committed > numRuns ? "holds" : "says nothing";
}

test("R1, read-abort", () => {
  expect(verdictOn(readAbort, { releases: true })).toBe("holds");
  expect(verdictOn(readAbort, { planted: { netGOff: true } })).toBe("holds");
});

test("R2, write-abort", () => {
  expect(verdictOn(writeAbort, { releases: true })).toBe("holds");
  expect(verdictOn(writeAbort, { planted: { netGOff: true } })).toBe("holds");
});

test("R3, read-write-commit, also when acceptors restart", () => {
  expect(verdictOn(readWriteCommit, { releases: true, restarts: true })).toBe("holds");
  expect(verdictOn(readWriteCommit, { planted: { netGOff: true }, releases: true, restarts: true })).toBe(
    "holds",
  );
});

test("R3 fails without an order of ballots, with an intransitive one, and without the floor", () => {
  expect(verdictOn(readWriteCommit, { planted: { netBOff: true } })).toBe("fails");
  expect(verdictOn(readWriteCommit, { planted: { ballotsEqualWithinSkew: true } })).toBe("fails");
  expect(verdictOn(readWriteCommit, { planted: { noFloor: true }, restarts: true })).toBe("fails");
});

test("R4, read-commit", () => {
  expect(verdictOn(readCommit, { releases: true })).toBe("holds");
  expect(verdictOn(readCommit, { planted: { netGOff: true }, releases: true })).toBe("holds");
  expect(verdictOn(readCommit, { planted: { netBOff: true, netGOff: true } })).toBe("fails");
});

test("R5, write-commit: net B alone makes every later read see the lease", () => {
  expect(verdictOn((history) => writeCommit(history, false), { planted: { netGOff: true } })).toBe("holds");
});

test("R5, write-commit: with net G nobody else's read commits while the lease runs", () => {
  expect(verdictOn((history) => writeCommit(history, true))).toBe("holds");
  expect(verdictOn((history) => writeCommit(history, true), { planted: { netGOff: true } })).toBe("fails");
});

test("R5 fails without an order of ballots, and with a smaller guard than written", () => {
  const lemma = (history: History) => writeCommit(history, false);
  expect(verdictOn(lemma, { planted: { netGOff: true, netBOff: true } })).toBe("fails");
  expect(verdictOn(lemma, { planted: { netGOff: true, renewalSkipsPromiseCheck: true } })).toBe("fails");
});
