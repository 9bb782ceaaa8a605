import { expect, test } from "vitest";
import { Kind } from "./protocol/message.js";
import { renewalsUnderWayMax } from "./renewal-queue.js";
import { benchProvider } from "../../../../test/support/provider-bench.js";

test("pending calls are answered at close, because nothing wakes the peer afterwards", async () => {
  const { provider, ack } = benchProvider();
  const request = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: false };
  const attempted = provider.attempt(request);
  ack();
  const outcome = await attempted;
  if (outcome.kind !== "granted") throw new Error(outcome.kind);
  const renewed = provider.renew(outcome.grant, 500);
  const asked = provider.query("r", 500);
  await provider.close();
  expect(await Promise.all([renewed, asked])).toEqual([false, { state: "unknown" }]);
});

test("a queued renewal does not delay a release", async () => {
  const { provider, ack, sent } = benchProvider();
  const request = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: false };
  const attempted = provider.attempt(request);
  ack();
  const outcome = await attempted;
  if (outcome.kind !== "granted") throw new Error(outcome.kind);
  const renewed = provider.renew(outcome.grant, 500);
  provider.forgoRenewal(outcome.grant);
  const before = sent.length;
  expect(await renewed).toBe(false);
  expect(sent.length).toBe(before);
  // An operation that has begun is awaited.
  const begun = provider.renew(outcome.grant, 500);
  await Promise.resolve();
  provider.forgoRenewal(outcome.grant);
  ack();
  expect(await begun).toBe(true);
});

test("an observer's attempt is refused before anything is sent", async () => {
  const { provider, sent } = benchProvider("observer");
  const request = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: false };
  expect(await provider.attempt(request)).toMatchObject({
    kind: "failed",
    error: { code: "PERMISSION_DENIED" },
  });
  expect(sent).toEqual([]);
});

const asked = { resource: "r", ttlMs: 500, timeoutMs: 500, contended: false, waiting: false };

test("a taker gets its outcome after the step: neither during its request nor in the middle of an answer", async () => {
  const { provider, ack } = benchProvider();
  const told: string[] = [];
  provider.begin(asked, { cancelled: false, onCancel: undefined, settled: ({ kind }) => told.push(kind) });
  ack();
  expect(told).toEqual([]);
  await Promise.resolve();
  expect(told).toEqual(["granted"]);
});

test("an attempt whose caller gave up before it began ends at once, and is withdrawn", async () => {
  const { provider, sent } = benchProvider();
  const cancellation = { cancelled: true, onCancel: undefined };
  expect(await provider.attempt(asked, cancellation)).toMatchObject({ kind: "failed" });
  expect(sent.length).toBeGreaterThan(0);
});

test("when more renewals wait than may be in flight, one that would be answered too late gives way to another", async () => {
  const { provider, answer, sent, world } = benchProvider();
  const roundTripMs = 10;
  const takeAll = async (count: number, name: string) => {
    const attempts = Array.from({ length: count }, (_, each) =>
      provider.attempt({ ...asked, resource: `${name}/${each}` }),
    );
    await world.advance(roundTripMs);
    for (const [index, request] of sent.splice(0).entries()) if (index % 3 === 0) answer(request, Kind.ack);
    return (await Promise.all(attempts)).map((outcome) => {
      if (outcome.kind !== "granted") throw new Error(outcome.kind);
      return outcome.grant;
    });
  };
  const soonOver = await takeAll(renewalsUnderWayMax + 1, "soon");
  await world.advance(asked.ttlMs - 3 * roundTripMs);
  const later = await takeAll(renewalsUnderWayMax, "later");
  await world.advance(roundTripMs / 2);
  for (const grant of [...soonOver, ...later]) void provider.renew(grant, asked.ttlMs);
  await world.advance(1);
  const begun = new Set(sent.map(({ resource }) => resource));
  expect(begun.size).toBeGreaterThan(renewalsUnderWayMax - 2);
  expect([...begun].filter((resource) => resource.startsWith("soon"))).toHaveLength(1);
});
