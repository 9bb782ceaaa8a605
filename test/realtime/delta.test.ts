import { describe, test } from "vitest";
import { runConformance } from "../../packages/leasehold/src/testing/conformance.js";
import { withoutForms } from "../support/forms.js";
import { realFarmGround } from "../support/memory-farm.js";

const farms = {
  "conditional leases": ["atomic", "atomic", "atomic"],
  "the paper's leases": ["slotted", "atomic", "atomic"],
} as const;

// The cases mostly sleep, so they run concurrently. `npm run test:slow -- stores` tests the other farms.
describe.each(Object.entries(farms))("%s on real time", (_name, kinds) => {
  // A writer has seventeen of the paper's leases, and waits for δ before each.
  const isSlow = kinds[0] === "slotted";
  runConformance(isSlow ? withoutForms(test.concurrent) : { describe, test: test.concurrent }, async () =>
    realFarmGround([...kinds]),
  );
});
