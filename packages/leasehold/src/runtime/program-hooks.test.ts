import { once } from "node:events";
import { expect, test } from "vitest";
import { programHooks } from "./program-hooks.js";

test.each([
  [Object.create(null), "[Object: null prototype] {}"],
  [new Error("of the listener"), "Error: of the listener"],
  [undefined, "undefined"],
])("whatever is thrown, even %o, becomes a warning of the process", async (thrown, detail) => {
  const warned = once(process, "warning");
  programHooks.warn("a listener threw", thrown);
  const [warning] = (await warned) as [Error & { detail: string }];
  expect(warning).toMatchObject({ name: "LeaseholdWarning", message: "a listener threw" });
  expect(warning.detail).toContain(detail);
});
