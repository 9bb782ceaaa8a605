import { describe, test } from "vitest";
import { virtualFarmGround } from "../../../../../test/support/memory-farm.js";
import { withoutForms } from "../../../../../test/support/forms.js";
import { effort } from "../../../../../test/support/effort.js";
import { runConformance } from "../../testing/conformance.js";

const farms = {
  "three stores that can only write": ["slotted", "slotted", "slotted"],
  "two stores that compare and set and one that can only write": ["slotted", "atomic", "atomic"],
  "one store that can only write": ["slotted"],
} as const;

describe.each(Object.entries(farms))("the paper's leases on %s", (name, kinds) => {
  const isFirst = name === "three stores that can only write";
  runConformance(kinds.length === 1 ? { describe, test } : withoutForms(), async () =>
    virtualFarmGround({ kinds }),
  );
  // These cases don't depend on the farm, and each costs seconds.
  if (effort === 1 && !isFirst) return;

  describe("with slow stores", () => {
    runConformance(withoutForms(), async () =>
      virtualFarmGround({
        kinds,
        afflict: (media) =>
          media.forEach((medium, store) => {
            medium.latencyMs = { request: 1 + store, answer: 3 - store };
          }),
      }),
    );
  });

  if (kinds.length > 1)
    describe.each(effort > 1 ? (["requests", "answers"] as const) : (["answers"] as const))(
      "one of which is silent before its %s",
      (at) => {
        runConformance(withoutForms(), async () =>
          virtualFarmGround({ kinds, delayMs: 50, afflict: ([first]) => first!.stall(at) }),
        );
      },
    );
});
