import { expect, test } from "vitest";
import { VirtualWorld } from "../testing/virtual-world.js";
import { sharedLimits } from "./core-client.js";

test("operations that share limits get the time that is left, never less than 0", async () => {
  const world = new VirtualWorld();
  const cancellation = { cancelled: false, onCancel: undefined };
  const limits = sharedLimits({ timeoutMs: 100, cancellation }, world.clock);
  expect(limits).toMatchObject({ timeoutMs: 100, cancellation });
  await world.advance(60);
  expect(limits.timeoutMs).toBe(40);
  await world.advance(60);
  expect(limits.timeoutMs).toBe(0);
});
