import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkLinearizable } from "./linearizability.js";
import type { HistoryOperation, SequentialModel } from "./linearizability.js";
import { casRegisterModel, registerModel, tokenGuardModel } from "./linearizability-models.js";
import type { CasInput, CasOutput, RegisterInput, RegisterOutput } from "./linearizability-models.js";

type Op = HistoryOperation<RegisterInput<number>, RegisterOutput<number>>;
const write = (value: number, calledAt: number, returnedAt?: number): Op => ({
  input: { write: value },
  calledAt,
  returnedAt,
});
const read = (value: number, calledAt: number, returnedAt?: number): Op => ({
  input: "read",
  output: { value },
  calledAt,
  returnedAt,
});
const isRegister = (...history: Op[]) =>
  checkLinearizable(registerModel(0), history).verdict === "linearizable";

describe("a register", () => {
  it.each<[string, Op[]]>([
    ["nothing", []],
    ["what was written is read", [write(1, 0, 1), read(1, 2, 3)]],
    ["a write in flight is seen", [write(1, 0, 10), read(1, 1, 2)]],
    ["a write in flight is not seen", [write(1, 0, 10), read(0, 1, 2)]],
    [
      "two writes in the order that the reads need",
      [write(1, 0, 10), write(2, 0, 10), read(2, 11, 12), read(2, 13, 14)],
    ],
    ["a write that never returned is seen late", [write(1, 0), read(0, 5, 6), read(1, 7, 8)]],
    ["a write that never returned is never seen", [write(1, 0), read(0, 5, 6), read(0, 7, 8)]],
    ["they touch", [write(1, 0, 5), read(0, 5, 6)]],
  ])("can be like this: %s", (_name, history) => {
    expect(isRegister(...history)).toBe(true);
  });

  it.each<[string, Op[]]>([
    ["a stale read", [write(1, 0, 1), read(0, 2, 3)]],
    ["a read of a value that nobody wrote", [write(1, 0, 1), read(7, 2, 3)]],
    ["new, then old", [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)]],
    [
      "two readers disagree on the order",
      [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12), read(2, 13, 14)],
    ],
    ["a read before the write", [read(1, 0, 1), write(1, 2, 3)]],
    ["a write that never returned is seen before it was called", [read(1, 0, 1), write(1, 2)]],
  ])("can't be like this: %s", (_name, history) => {
    expect(isRegister(...history)).toBe(false);
  });

  it("reports how far an explanation went, and what could not come next", () => {
    const stale = read(0, 4, 5);
    const result = checkLinearizable(registerModel(0), [write(1, 0, 1), read(1, 2, 3), stale]);
    expect(result.longest).toHaveLength(2);
    expect(result.stuckAt).toEqual([stale]);
  });

  it("finds one stale read among many operations", () => {
    const history: Op[] = [];
    for (let round = 0; round < 200; round += 1)
      history.push(write(round, round * 10, round * 10 + 12), read(round, round * 10 + 13, round * 10 + 15));
    expect(isRegister(...history)).toBe(true);
    history[301] = read(147, 1513, 1515);
    expect(isRegister(...history)).toBe(false);
  });
});

it("of two compare-and-sets from one value, one succeeds", () => {
  const swap = (swapped: boolean, to: number, calledAt: number, returnedAt: number) => ({
    input: { compare: 0, swap: to },
    output: { swapped },
    calledAt,
    returnedAt,
  });
  const check = (first: boolean, second: boolean) =>
    checkLinearizable(casRegisterModel(0), [swap(first, 1, 0, 2), swap(second, 2, 1, 3)]).verdict;
  expect([check(true, true), check(true, false), check(false, true), check(false, false)]).toEqual([
    "violated",
    "linearizable",
    "linearizable",
    "violated",
  ]);
});

describe("a token guard", () => {
  const use = (resource: string, token: bigint, accepted: boolean, calledAt: number, returnedAt: number) => ({
    input: { resource, token },
    output: { accepted },
    calledAt,
    returnedAt,
  });

  it("lets rising tokens pass and refuses lower ones", () => {
    const history = [use("r", 1n, true, 0, 1), use("r", 2n, true, 2, 3), use("r", 1n, false, 4, 5)];
    expect(checkLinearizable(tokenGuardModel(), history).verdict).toBe("linearizable");
  });

  it("is caught when it lets an older token pass, or refuses a newer one", () => {
    const passes = [use("r", 2n, true, 0, 1), use("r", 1n, true, 2, 3)];
    const refuses = [use("r", 1n, true, 0, 1), use("r", 2n, false, 2, 3)];
    expect(checkLinearizable(tokenGuardModel(), passes).verdict).toBe("violated");
    expect(checkLinearizable(tokenGuardModel(), refuses).verdict).toBe("violated");
  });

  it("is separate for each resource", () => {
    const history = [use("r", 2n, true, 0, 1), use("s", 1n, true, 2, 3)];
    const { verdict, order } = checkLinearizable(tokenGuardModel(), history);
    expect(verdict).toBe("linearizable");
    expect(order).toEqual(history);
  });
});

/** Tries every order of every subset that contains all returned operations. */
function bruteForce<State, Input, Output>(
  model: SequentialModel<State, Input, Output>,
  history: readonly HistoryOperation<Input, Output>[],
): boolean {
  const go = (state: State, left: readonly HistoryOperation<Input, Output>[]): boolean => {
    if (left.every(({ returnedAt }) => returnedAt === undefined)) return true;
    return left.some((next) => {
      if (left.some(({ returnedAt }) => returnedAt !== undefined && returnedAt < next.calledAt)) return false;
      const answer = next.returnedAt === undefined ? undefined : next.output;
      const rest = left.filter((other) => other !== next);
      return model.step(state, next.input, answer).some((after) => go(after, rest));
    });
  };
  return go(model.initial, history);
}

describe("small random histories", () => {
  const value = fc.integer({ min: 0, max: 2 });
  const input: fc.Arbitrary<CasInput<number>> = fc.oneof(
    fc.constant("read" as const),
    fc.record({ write: value }),
    fc.record({ compare: value, swap: value }),
  );
  const operation = fc
    .record({
      input,
      calledAt: fc.integer({ min: 0, max: 12 }),
      lasts: fc.option(fc.integer({ min: 0, max: 8 })),
      value,
      swapped: fc.boolean(),
    })
    .map(
      ({ input, calledAt, lasts, value, swapped }): HistoryOperation<CasInput<number>, CasOutput<number>> => {
        const output = input === "read" ? { value } : "write" in input ? {} : { swapped };
        return { input, calledAt, output, returnedAt: lasts === null ? undefined : calledAt + lasts };
      },
    );

  it("get the verdict of an exhaustive search, and an explanation", () => {
    const seen = { good: 0, bad: 0 };
    const model = casRegisterModel(0);
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 7 }), (history) => {
        const result = checkLinearizable(model, history);
        const good = bruteForce(model, history);
        expect(result.verdict).toBe(good ? "linearizable" : "violated");
        seen[good ? "good" : "bad"] += 1;
        if (!good) return;
        let state = model.initial;
        for (const { input, output, returnedAt } of result.order) {
          const [after, ...others] = model.step(state, input, returnedAt === undefined ? undefined : output);
          expect(others).toEqual([]);
          state = after;
        }
      }),
      { numRuns: 2_000, seed: 1 },
    );
    expect(Math.min(seen.good, seen.bad)).toBeGreaterThan(200);
  });
});

describe("a search that takes too long", () => {
  /** This many concurrent writes have very many orders, and none of them lets the read see 99. */
  const hard = (count: number): Op[] => [
    ...Array.from({ length: count }, (_, index) => write(index, 0, 100)),
    read(99, 101, 102),
  ];

  it("gives up at its limit of steps, with the verdict unknown", () => {
    const result = checkLinearizable(registerModel(0), hard(14), { stepsMax: 500 });
    expect(result).toMatchObject({ verdict: "unknown", order: [] });
    expect(result.longest.length).toBeGreaterThan(0);
  });

  it("decides the same history with a higher limit", () => {
    expect(checkLinearizable(registerModel(0), hard(10)).verdict).toBe("violated");
  });

  it("gives up at its limit of memory, too", () => {
    // Each state's key takes a megabyte, so after some hundreds of states the memory limit is reached, long
    // before the step limit.
    const model = { ...registerModel(0), keyOf: (state: number | undefined) => `${state}`.padStart(2 ** 20) };
    expect(checkLinearizable(model, hard(12)).verdict).toBe("unknown");
  });

  it("does not hide a violation in a small partition", () => {
    type Use = HistoryOperation<{ resource: string; token: bigint }, { accepted: boolean }>;
    const use = (
      resource: string,
      token: number,
      accepted: boolean,
      calledAt: number,
      returnedAt: number,
    ): Use => ({
      input: { resource, token: BigInt(token) },
      output: { accepted },
      calledAt,
      returnedAt,
    });
    const large = Array.from({ length: 14 }, (_, index) => use("large", index, true, 0, 100));
    const impossible = use("large", 50, false, 101, 102);
    const small = [use("small", 2, true, 0, 1), use("small", 1, true, 2, 3)];
    const verdictOf = (...history: Use[]) =>
      checkLinearizable(tokenGuardModel(), history, { stepsMax: 200 }).verdict;
    expect(verdictOf(...large, impossible)).toBe("unknown");
    expect(verdictOf(...large, impossible, ...small)).toBe("violated");
  });
});

describe("large histories", () => {
  /**
   * Four clients use a correct register. Each operation happens at some instant between its call and its
   * return.
   */
  function historyOf(seed: number, count: number): Op[] {
    let state = seed;
    const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const happening = Array.from({ length: count }, (_, index) => {
      const at = index + random() / 2;
      return { at, calledAt: at - 2 * random(), returnedAt: at + 2 * random(), writes: random() < 0.3 };
    });
    let value = 0;
    return happening.map(({ calledAt, returnedAt, writes }, index) => {
      if (writes) value = index;
      return writes ? write(value, calledAt, returnedAt) : read(value, calledAt, returnedAt);
    });
  }

  it("of a correct register are never accused, and a planted stale read is always found", () => {
    let planted = 0;
    for (let seed = 1; seed <= 20; seed += 1) {
      const history = historyOf(seed, 2_000);
      expect(isRegister(...history)).toBe(true);
      const at = 500 + seed * 50;
      // Written before the last twenty operations ended.
      const stale = history.slice(0, at - 20).findLast(({ input }) => input !== "read")!;
      const value = (stale.input as { write: number }).write;
      const overwritten = history.slice(at - 18, at - 4).some(({ input }) => input !== "read");
      if (!overwritten) continue;
      planted += 1;
      history[at] = read(value, history[at]!.calledAt, history[at]!.returnedAt);
      expect(checkLinearizable(registerModel(0), history).verdict).toBe("violated");
    }
    expect(planted).toBeGreaterThan(15);
  });
});

it.each([
  [{ input: "read" as const, calledAt: Number.NaN }, "must be a number"],
  [{ input: "read" as const, calledAt: 5, returnedAt: 4 }, "cannot return at 4"],
])("an operation like %j is refused", (operation, message) => {
  expect(() => checkLinearizable(registerModel(0), [operation])).toThrow(message);
});
