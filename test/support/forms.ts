import { describe, test } from "vitest";
import { countingCases } from "../../src/testing/conformance/counting.js";
import { sharingCases } from "../../src/testing/conformance/sharing.js";
import type { TestFramework } from "../../src/testing/conformance.js";
import { effort } from "./effort.js";

const register: TestFramework["test"] = test;
const forms = new Set(Object.keys({ ...countingCases, ...sharingCases }));

/**
 * For one ground with other hazards: counted and shared leases are made of exclusive ones alone, and cost
 * seconds where one of these does. With greater effort they are tried there, too.
 */
export const withoutForms: TestFramework = {
  describe,
  test: (name, run) => (effort === 1 && forms.has(name) ? undefined : register(name, run)),
};
