import type { JsonValue } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Action, services } from "./action.js";
import { knownDifferences } from "./known-differences.js";
import { RandomSequences } from "./random-sequences.js";

const seeds = 6_000;

/** One in five has rights. */
const leftOut = new Map<string, number>();
const sequences = Array.from({ length: seeds }, (_, seed) =>
  new RandomSequences(seed + 1, leftOut).next(seed % 5 === 4),
);
const actions = sequences.flatMap((sequence) => sequence.actions);

const counted = (names: readonly string[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
};
const nameOf = ({ service, method }: Action): string => `${service}.${method}`;

test("the sequences of neighbouring seeds have nothing to do with each other", () => {
  const plain = sequences.filter(({ withRights }) => !withRights);
  expect(new Set(plain.map((each) => JSON.stringify(each.actions))).size).toBe(plain.length);
  // The length is drawn first: one in twenty is long, whatever the seeds.
  const isLong = (seed: number) => new RandomSequences(seed).next(false).actions.length > 28;
  for (const from of [1, 5_001, 1_000_001]) {
    const long = Array.from({ length: 400 }, (_, at) => from + at).filter(isLong);
    expect(long.length).toBeGreaterThan(4);
    expect(long.length).toBeLessThan(40);
  }
});

/**
 * Methods that cannot be compared here or have a test of their own, and those with which each sequence with
 * rights begins and ends.
 */
const elsewhere = new Set(["Snapshot", "Downgrade", "AuthStatus", "Watch"]);

test("every method is asked for, and every way to ask", () => {
  const methods = Object.entries(services).flatMap(([service, { methods: all }]) =>
    all.filter(({ name }) => !elsewhere.has(name)).map(({ name }) => `${service}.${name}`),
  );
  const counts = counted(actions.map(nameOf));
  const rare = [
    ...methods,
    "Watch.create",
    "Watch.cancel",
    "Watch.progress",
    "Lease.runOut",
    "Lock.giveUp",
  ].filter((name) => (counts.get(name) ?? 0) < 10);
  expect(rare).toEqual([]);

  const fields = counted(
    actions.flatMap(({ method, request }) => [...fieldsOf(request)].map((name) => `${method} ${name}`)),
  );
  const wanted = [
    "Range limit revision sortOrder sortTarget serializable keysOnly countOnly minModRevision maxModRevision",
    "Range minCreateRevision maxCreateRevision",
    "Put lease prevKv ignoreValue ignoreLease",
    "DeleteRange rangeEnd prevKv",
    "Txn requestPut requestRange requestDeleteRange requestTxn prevKv lease ignoreLease rangeEnd limit",
    "create startRevision watchId prevKv filters fragment rangeEnd",
    "Compact physical",
  ].flatMap((line) => {
    const [method, ...names] = line.split(" ");
    return names.map((name) => `${method} ${name}`);
  });
  expect(wanted.filter((name) => (fields.get(name) ?? 0) < 20)).toEqual([]);
});

/** Only shrinking a sequence would need these. */
const neverAsked = ["a lease that the server gives to who waits", "a voter that does not run"];

test("every difference that is known is met, and little is left out for it", () => {
  const unmet = knownDifferences.filter((name) => !leftOut.has(name));
  expect(unmet.toSorted()).toEqual(neverAsked);
  const all = [...leftOut.values()].reduce((sum, count) => sum + count);
  expect(all).toBeLessThan(actions.length / 12);
});

function fieldsOf(json: JsonValue, found = new Set<string>()): Set<string> {
  if (typeof json !== "object" || json === null) return found;
  for (const [name, value] of Object.entries(json)) {
    if (!Array.isArray(json)) found.add(name);
    fieldsOf(value, found);
  }
  return found;
}
