import { describe, test } from "vitest";
import { withoutForms } from "../../../../../test/support/forms.js";
import { virtualFarmGround } from "../../../../../test/support/memory-farm.js";
import { runConformance } from "../../testing/conformance.js";

describe("conditional leases on virtual time", () => {
  runConformance({ describe, test }, async () => virtualFarmGround());
});

describe("conditional leases where one of three stores is silent", () => {
  for (const at of ["requests", "answers"] as const)
    describe(`before it has done with its ${at}`, () => {
      runConformance(withoutForms(), async () =>
        virtualFarmGround({ delayMs: 50, afflict: ([first]) => first!.stall(at) }),
      );
    });
});

describe("conditional leases on slow stores", () => {
  runConformance(withoutForms(), async () =>
    virtualFarmGround({
      afflict: (media) =>
        media.forEach((medium, store) => {
          medium.latencyMs = { request: 1 + store, answer: 3 - store };
        }),
    }),
  );
});
