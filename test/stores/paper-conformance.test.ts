import { describe, test } from "vitest";
import { runConformance } from "../../packages/leasehold/src/testing/conformance.js";
import { withoutForms } from "../support/forms.js";
import { realFarmGround } from "../support/memory-farm.js";

describe.each([[["slotted", "slotted", "slotted"]], [["slotted"]]] as const)(
  "the paper's leases on real time, on %j",
  (kinds) => {
    runConformance(withoutForms(test.concurrent), async () => realFarmGround(kinds));
  },
);
