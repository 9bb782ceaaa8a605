import type { Store } from "../delta/store.js";
import { atomicCases } from "./conformance/atomic-cases.js";
import { commonCases } from "./conformance/common-cases.js";
import { slottedCases } from "./conformance/slotted-cases.js";
import { StoreStage } from "./conformance/stage.js";

/** What the suite needs of the medium that it is held against. Each case gets an empty one, or at least names of its own. */
export interface StoreGround {
  readonly kind: Store["traits"]["kind"];
  /** Opens the same medium as another process would. The suite closes what it opens. */
  open(writer: string): Promise<Store>;
  /** Puts an empty medium in the place of this one, as a lost disk or a restored backup would; stores that are open go on with it. */
  forget?(): Promise<void>;
  /** Removes the medium. */
  close(): Promise<void>;
}

export interface StoreCase {
  readonly name: string;
  /** Resolves when the store conforms; rejects with an error that says what it did instead. */
  run(ground: StoreGround): Promise<void>;
}

/** What every store of a kind has to do, one case each, for whatever runs tests. */
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

/** Registers the suite: `runStoreConformance({ describe, test }, "atomic", makeGround)`. Each ground is closed after its case. */
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
