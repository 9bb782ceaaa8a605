import { argumentCases } from "./conformance/arguments.js";
import { dataCases } from "./conformance/data.js";
import { attachCases } from "./conformance/attach.js";
import { handOverCases } from "./conformance/hand-over.js";
import { detachCases } from "./conformance/detach.js";
import { queryCases } from "./conformance/queries.js";
import { countedLeaseCases } from "./conformance/counted-leases.js";
import { exclusionCases } from "./conformance/exclusion.js";
import { fairnessCases } from "./conformance/fairness.js";
import { lifetimeCases } from "./conformance/lifetime.js";
import { leaseSetCases } from "./conformance/lease-sets.js";
import { type ConformanceCase, type ConformanceGround, Stage } from "./conformance/stage.js";
import { sharedLeaseCases } from "./conformance/shared-leases.js";
import { waitCases } from "./conformance/wait.js";
import { watchCases } from "./conformance/watch.js";

export type { ConformanceCase, ConformanceGround } from "./conformance/stage.js";

/**
 * The functions that {@link runConformance} needs of a test framework: vitest, node:test and mocha have them.
 */
export interface TestFramework {
  describe?(name: string, define: () => void): unknown;
  test(name: string, run: () => Promise<void>): unknown;
}

/**
 * The requirements for every provider, one case each, for any test runner.
 *
 * @example
 * ```ts
 * const cluster = new MemoryCluster({ ttlMax: "2s" });
 * const ground = {
 *   ttlMs: 2_000,
 *   open: async (name: string) => cluster.open(name),
 *   pass: (ms: number) => cluster.advance(ms),
 *   close: () => cluster.close(),
 * };
 * for (const { name, run } of conformanceCases()) {
 *   await run(ground);
 *   console.log(`conforms: ${name}`);
 * }
 * await cluster.close();
 * ```
 */
export function conformanceCases(): ConformanceCase[] {
  const cases = {
    ...exclusionCases,
    ...lifetimeCases,
    ...waitCases,
    ...leaseSetCases,
    ...countedLeaseCases,
    ...sharedLeaseCases,
    ...fairnessCases,
    ...argumentCases,
    ...queryCases,
    ...watchCases,
    ...dataCases,
    ...detachCases,
    ...attachCases,
    ...handOverCases,
  };
  return Object.entries(cases).map(([name, run]) => ({
    name,
    run: (ground: ConformanceGround) => run(new Stage(ground)),
  }));
}

/**
 * Registers the suite with a test framework. Each case gets its own ground, which is closed after the case.
 *
 * @example
 * ```ts no-run
 * import { describe, test } from "vitest";
 *
 * runConformance({ describe, test }, async () => {
 *   const cluster = new MemoryCluster({ ttlMax: "2s" });
 *   return {
 *     ttlMs: 2_000,
 *     open: async (name) => cluster.open(name),
 *     pass: (ms) => cluster.advance(ms),
 *     close: () => cluster.close(),
 *   };
 * });
 * ```
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
