import { describe, test } from "vitest";
import { countedLeaseCases } from "../../packages/leasehold/src/testing/conformance/counted-leases.js";
import { sharedLeaseCases } from "../../packages/leasehold/src/testing/conformance/shared-leases.js";
import type { TestFramework } from "../../packages/leasehold/src/testing/conformance.js";
import { effort } from "./effort.js";

const forms = new Set(Object.keys({ ...countedLeaseCases, ...sharedLeaseCases }));

/**
 * For one ground with other hazards, or a slow one: counted and shared leases are made of exclusive ones alone, and
 * cost seconds where one of these does. With greater effort they are tried there, too.
 */
export function withoutForms(register: TestFramework["test"] = test): TestFramework {
  return {
    describe,
    test: (name, run) => (effort === 1 && forms.has(name) ? undefined : register(name, run)),
  };
}
