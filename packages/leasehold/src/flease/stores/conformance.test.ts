import { describe, test } from "vitest";
import { withoutForms } from "../../../../../test/support/forms.js";
import { virtualGridGround } from "../../../../../test/support/memory-grid.js";
import { runConformance } from "../../testing/conformance.js";

/** Leases on three stores in memory, in virtual time. */
describe.each([
  ["three stores", undefined],
  ["one of them silent", "requests"],
  ["one of them takes all and says nothing", "answers"],
] as const)("the grid on three stores: %s", (_name, stalled) => {
  runConformance(stalled === undefined ? { describe, test } : withoutForms(), async () =>
    virtualGridGround(stalled),
  );
});
