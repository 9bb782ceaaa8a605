import { argumentCases } from "./conformance/arguments.js";
import { askingCases } from "./conformance/asking.js";
import { exclusionCases } from "./conformance/exclusion.js";
import { lifetimeCases } from "./conformance/lifetime.js";
import { type ConformanceCase, type ConformanceGround, Stage } from "./conformance/stage.js";
import { waitingCases } from "./conformance/waiting.js";

export type { ConformanceCase, ConformanceGround } from "./conformance/stage.js";

/** The part of a test framework that {@link runConformance} needs: vitest, node:test and mocha have it. */
export interface TestFramework {
  describe?(name: string, define: () => void): unknown;
  test(name: string, run: () => Promise<void>): unknown;
}

/** What every provider has to do, one case each, for whatever runs tests. */
export function conformanceCases(): ConformanceCase[] {
  const cases = { ...exclusionCases, ...lifetimeCases, ...waitingCases, ...argumentCases, ...askingCases };
  return Object.entries(cases).map(([name, run]) => ({
    name,
    run: (ground: ConformanceGround) => run(new Stage(ground)),
  }));
}

/**
 * Registers the suite with a test framework. Each case gets a ground of its own, which is closed after it.
 *
 * @example
 * import { describe, test } from "vitest";
 * runConformance({ describe, test }, async () => myGround());
 */
export function runConformance(framework: TestFramework, makeGround: () => Promise<ConformanceGround>): void {
  const define = () => {
    for (const { name, run } of conformanceCases()) {
      framework.test(name, async () => {
        const ground = await makeGround();
        try {
          await run(ground);
        } finally {
          await ground.close();
        }
      });
    }
  };
  if (framework.describe === undefined) define();
  else framework.describe("conformance", define);
}
