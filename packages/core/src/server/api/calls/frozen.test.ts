import { expect, test } from "vitest";
import { HeldCarrier } from "../../../../../../test/support/held-carrier.js";
import type { Settle } from "../../../host/host.js";
import type { FrozenState } from "../../../replica/frozen-state.js";
import { CoreError } from "../../../state/errors.js";
import { Frozen } from "./frozen.js";

const state = { $typeName: "leasehold.FrozenState" } as unknown as FrozenState;

test("a caller whose refusal is pending takes none of the few slots", async () => {
  const asked: Settle[] = [];
  const host = { request: (...[, , , settle]: [unknown, unknown, unknown, Settle]) => asked.push(settle) };
  const frozen = new Frozen(1_000, { of: () => undefined });
  const call = new HeldCarrier().stream(() => undefined);
  const use = (read = () => Promise.resolve("read")) =>
    frozen.use(host, call, read).catch((error: unknown) => (error as CoreError).failure);
  const refused = Array.from({ length: 10 }, () => use());
  await Promise.resolve();
  let release = () => undefined as void;
  const held = new Promise<void>((resolve) => (release = resolve));
  const readers = Array.from({ length: 5 }, () => use(() => held.then(() => "held")));
  await Promise.resolve();
  expect(asked.length).toBe(15);
  for (const settle of asked.slice(10)) settle(state);
  expect(await readers[4]).toBe("tooManyRequests");
  for (const settle of asked.slice(0, 10)) settle(new CoreError("permissionDenied"));
  expect(new Set(await Promise.all(refused))).toEqual(new Set(["permissionDenied"]));
  release();
  expect(await Promise.all(readers)).toEqual(["held", "held", "held", "held", "tooManyRequests"]);
  // All places are free again.
  const last = use();
  await Promise.resolve();
  asked.at(-1)!(state);
  expect(await last).toBe("read");
});
