import { describe, expect, test } from "vitest";
import { MemoryCluster } from "../testing/memory-cluster.js";
import type { Lease, Leases } from "./types.js";

type Call = (leases: Leases, options: object) => unknown;

const work = (lease: Lease) => Promise.resolve(lease.token);

const calls: [string, Call][] = [
  ["acquire", (leases, options) => leases.acquire("a", options)],
  ["acquireAll", (leases, options) => leases.acquireAll(["a"], options)],
  ["using", (leases, options) => leases.using("a", options, work)],
  ["leader", async (leases, options) => leases.leader("a", options)],
  ["tryAcquire", (leases, options) => leases.tryAcquire("a", options)],
  ["lead", (leases, options) => leases.lead("a", work, options)],
  ["holder", (leases, options) => leases.holder("a", options)],
  ["list", (leases, options) => leases.list("a", options)],
  ["watch", async (leases, options) => leases.watch("a", options)],
  ["explain", (leases, options) => leases.explain("a", options)],
  ["requestRelease", (leases, options) => leases.requestRelease("a", options)],
  ["break", (leases, options) => leases.break("a", options)],
];

async function refusalOf(run: (leases: Leases) => unknown): Promise<string> {
  const cluster = new MemoryCluster();
  const refused = await Promise.resolve(run(cluster.open("alice"))).catch((error: unknown) => error);
  await cluster.close();
  return refused instanceof Error && "code" in refused ? `${String(refused.code)}: ${refused.message}` : "";
}

describe("an unknown option", () => {
  test.each(calls)("is refused by %s, with its name and the known ones", async (name, call) => {
    expect(await refusalOf((leases) => call(leases, { colour: "red" }))).toMatch(
      new RegExp(`^INVALID_CONFIG: ${name} has no option "colour"; it takes (?:\\w+, )*signal`),
    );
  });

  test.each(calls)(
    "is ignored by %s while it is undefined, or comes from Object.prototype",
    async (_, call) => {
      expect(await refusalOf((leases) => call(leases, { colour: undefined }))).not.toMatch("INVALID_CONFIG");
      const all = Object.prototype as unknown as { colour?: string };
      all.colour = "red";
      try {
        expect(await refusalOf((leases) => call(leases, {}))).not.toMatch("INVALID_CONFIG");
      } finally {
        delete all.colour;
      }
    },
  );

  test.each(calls)(
    "is refused by %s also when it is inherited, as known options are accepted",
    async (_, call) => {
      const inherited = Object.create({ colour: 1 }) as object;
      expect(await refusalOf((leases) => call(leases, inherited))).toMatch(/has no option "colour"/);
      const { signal } = new AbortController();
      expect(await refusalOf((leases) => call(leases, signal))).toMatch(/has no option "aborted"/);
    },
  );

  test.each([
    ["tt", "ttl"],
    ["TTL", "ttl"],
    ["autorenew", "autoRenew"],
    ["maxhold", "maxHold"],
    ["waits", "wait"],
    ["singal", "signal"],
  ])("%s is answered with the nearest one, %s", async (wrong, right) => {
    expect(await refusalOf((leases) => leases.acquire("a", { [wrong]: 3 }))).toBe(
      `INVALID_CONFIG: acquire has no option "${wrong}"; did you mean ${right}?`,
    );
  });

  test("is shortened in the message, however long it is", async () => {
    const message = await refusalOf((leases) => leases.acquire("a", { ["x".repeat(1e6)]: 1 }));
    expect(message.length).toBeLessThan(200);
  });

  test("of another call is refused, too: a try does not wait", async () => {
    const options: object = { wait: "5s" };
    expect(await refusalOf((leases) => leases.tryAcquire("a", options))).toMatch(
      /tryAcquire has no option "wait"/,
    );
  });
});

test.each(calls)("an invalid signal is refused by %s, and costs nothing afterwards", async (name, call) => {
  for (const signal of [new AbortController(), null, true])
    for (let round = 0; round < 17; round += 1)
      expect(await refusalOf((leases) => call(leases, { signal }))).toMatch(
        `INVALID_CONFIG: the signal of ${name} is not an AbortSignal`,
      );
});

test.each([[null], ["15s"], [15]])("options that are %o and not an object are refused", async (options) => {
  expect(await refusalOf((leases) => leases.acquire("a", options as unknown as object))).toBe(
    "INVALID_CONFIG: the options of acquire must be an object",
  );
});
