import { expect, test } from "vitest";
import type { Settle } from "../../../host/host.js";
import type { FrozenState } from "../../../replica/frozen-state.js";
import { CoreError } from "../../../state/errors.js";
import { Metadata } from "../../wire/rpc/call.js";
import { Frozen } from "./frozen.js";

const state = { $typeName: "leasehold.FrozenState" } as unknown as FrozenState;

function callOf(address: string) {
  return { peer: { address, commonName: "" }, metadata: new Metadata(new Map()), deadlineMs: Infinity };
}

test("one client gets two of the four slots", async () => {
  const host = { request: (...[, , , settle]: [unknown, unknown, unknown, Settle]) => (settle(state), 0) };
  const frozen = new Frozen(1_000, { of: () => undefined });
  let release = () => undefined as void;
  const held = new Promise<string>((resolve) => (release = () => resolve("held")));
  const used = Array.from({ length: 3 }, () => frozen.use(host, callOf("one"), () => held));
  await expect(used[2]).rejects.toThrow("too many requests");
  const other = frozen.use(host, callOf("other"), () => held);
  release();
  expect(await Promise.all([used[0], used[1], other])).toEqual(["held", "held", "held"]);
});

test("a caller whose refusal is pending takes none of the few slots", async () => {
  const asked: Settle[] = [];
  const host = { request: (...[, , , settle]: [unknown, unknown, unknown, Settle]) => asked.push(settle) };
  const frozen = new Frozen(1_000, { of: () => undefined });
  const use = (client = "one", read = () => Promise.resolve("read")) =>
    frozen.use(host, callOf(client), read).catch((error: unknown) => (error as CoreError).failure);
  const refused = Array.from({ length: 10 }, () => use());
  await Promise.resolve();
  let release = () => undefined as void;
  const held = new Promise<void>((resolve) => (release = resolve));
  const readers = Array.from({ length: 5 }, (_, number) =>
    use(`client ${number}`, () => held.then(() => "held")),
  );
  await Promise.resolve();
  expect(asked.length).toBe(15);
  for (const settle of asked.slice(10)) settle(state);
  expect(await readers[4]).toBe("tooManyRequests");
  for (const settle of asked.slice(0, 10)) settle(new CoreError("permissionDenied"));
  expect(new Set(await Promise.all(refused))).toEqual(new Set(["permissionDenied"]));
  release();
  expect(await Promise.all(readers)).toEqual(["held", "held", "held", "held", "tooManyRequests"]);
  // All slots are free again.
  const last = use();
  await Promise.resolve();
  asked.at(-1)!(state);
  expect(await last).toBe("read");
});
