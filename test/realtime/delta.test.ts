import { describe, test } from "vitest";
import { runConformance } from "../../packages/leasehold/src/testing/conformance.js";
import { withoutForms } from "../support/forms.js";
import { realFarmGround } from "../support/memory-farm.js";

const farms = {
  "conditional leases": ["atomic", "atomic", "atomic"],
  "the paper's leases": ["slotted", "atomic", "atomic"],
} as const;

// Each case spends its time asleep, so they may run side by side. The other farms: `npm run test:slow -- stores`.
describe.each(Object.entries(farms))("%s on real time", (_name, kinds) => {
  // A writer has seventeen of the paper's leases, each after waits of δ.
  const isSlow = kinds[0] === "slotted";
  runConformance(isSlow ? withoutForms(test.concurrent) : { describe, test: test.concurrent }, async () =>
    realFarmGround([...kinds]),
  );
});
