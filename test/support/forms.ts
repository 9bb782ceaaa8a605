import { describe, test } from "vitest";
import { countedLeaseCases } from "../../packages/leasehold/src/testing/conformance/counted-leases.js";
import { sharedLeaseCases } from "../../packages/leasehold/src/testing/conformance/shared-leases.js";
import type { TestFramework } from "../../packages/leasehold/src/testing/conformance.js";
import { effort } from "./effort.js";

const forms = new Set(Object.keys({ ...countedLeaseCases, ...sharedLeaseCases }));

/**
 * Registers the conformance cases without those of counted and shared leases, for a ground that is slow, or
 * that differs from a tested one only in its hazards. These forms are made of exclusive leases alone, and are
 * slow where exclusive leases are. With greater effort their cases run there, too.
 */
export function withoutForms(register: TestFramework["test"] = test): TestFramework {
  return {
    describe,
    test: (name, run) => (effort === 1 && forms.has(name) ? undefined : register(name, run)),
  };
}
