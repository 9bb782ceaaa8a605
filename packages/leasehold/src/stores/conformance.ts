import type { Store } from "../delta/store.js";
import { atomicCases } from "./conformance/atomic-cases.js";
import { commonCases } from "./conformance/common-cases.js";
import { slottedCases } from "./conformance/slotted-cases.js";
import { type StoreGround, StoreStage } from "./conformance/stage.js";

export type { StoreGround };

export interface StoreCase {
  readonly name: string;
  /** Resolves when the store conforms; rejects with an error that describes the deviation. */
  run(ground: StoreGround): Promise<void>;
}

/** The requirements for every store of a kind, one case each, for any test runner. */
export function storeConformanceCases(kind: Store["traits"]["kind"]): StoreCase[] {
  const cases = { ...commonCases, ...(kind === "atomic" ? atomicCases : slottedCases) };
  return Object.entries(cases).map(([name, run]) => ({
    name,
    async run(ground: StoreGround) {
      const stage = new StoreStage(ground);
      try {
        await run(stage);
      } finally {
        await stage.close();
      }
    },
  }));
}

/**
 * Registers the suite: `runStoreConformance({ describe, test }, "atomic", makeGround)`. Each ground is closed
 * after its case.
 */
export function runStoreConformance(
  framework: {
    describe(name: string, define: () => void): unknown;
    test(name: string, run: () => Promise<void>): unknown;
  },
  kind: Store["traits"]["kind"],
  makeGround: () => Promise<StoreGround>,
): void {
  framework.describe(`conforms as ${kind} store`, () => {
    for (const { name, run } of storeConformanceCases(kind)) {
      framework.test(name, async () => {
        const ground = await makeGround();
        try {
          await run(ground);
        } finally {
          await ground.close();
        }
      });
    }
  });
}
