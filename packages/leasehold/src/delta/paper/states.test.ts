import { describe, expect, expectTypeOf, it } from "vitest";
import { contend } from "./contend.js";
import { release, renewEventuallyND, renewND } from "./renew.js";
import { Held, Idle } from "./states.js";
import type { DeltaRecord } from "../record/record.js";

/** Whether a process in this state may call the function: the state is its second argument. */
type Permits<Call, State> = Call extends (site: never, state: infer Wanted) => unknown
  ? State extends Wanted
    ? true
    : false
  : never;

describe("the states of Figs. 1 and 4", () => {
  it("permit no renewal and no release without a hold", () => {
    expectTypeOf<Permits<typeof renewND, Idle>>().toEqualTypeOf<false>();
    expectTypeOf<Permits<typeof renewEventuallyND, Idle>>().toEqualTypeOf<false>();
    expectTypeOf<Permits<typeof release, Idle>>().toEqualTypeOf<false>();
    expectTypeOf<Permits<typeof contend, Held>>().toEqualTypeOf<false>();
    expectTypeOf<Permits<typeof renewND, Held>>().toEqualTypeOf<true>();
    expectTypeOf<Permits<typeof contend, Idle>>().toEqualTypeOf<true>();
    // An object that merely looks like a hold is not a hold.
    expectTypeOf<
      Permits<typeof renewND, { state: "hold"; record: DeltaRecord; remainingMs: () => number }>
    >().toEqualTypeOf<false>();
    expect(new Idle().state).toBe("idle");
  });

  it("a hold ends by the clock that has advanced further", () => {
    const record = { leaseMs: 1_000 } as DeltaRecord;
    const held = new Held(record, { monotonicMs: 0, wallMs: 5_000 });
    expect(held.remainingMs({ monotonicMs: 400, wallMs: 5_350 })).toBe(600);
    expect(held.remainingMs({ monotonicMs: 650, wallMs: 5_700 })).toBe(300);
    expect(held.remainingMs({ monotonicMs: 1_000, wallMs: 5_950 })).toBe(0);
  });

  it("a hold is not valid while its clocks disagree: the machine slept, and its system clock is slow", () => {
    const record = { leaseMs: 20_000 } as DeltaRecord;
    const held = new Held(record, { monotonicMs: 0, wallMs: 0 });
    expect(held.remainingMs({ monotonicMs: 1_000, wallMs: 13_000 })).toBe(0);
    expect(held.remainingMs({ monotonicMs: 13_000, wallMs: 1_000 })).toBe(0);
  });
});
