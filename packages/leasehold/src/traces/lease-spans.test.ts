import { context, type Span, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SamplingDecision,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, expect, test } from "vitest";
import { traceLeases } from "../entry/traces.js";
import { LeaseholdError } from "../lease/errors.js";
import { open } from "../index.js";
import { MemoryCluster } from "../testing/memory-cluster.js";
import type { Leases } from "../lease/types.js";

/** Uses the real SDK and its real context manager. */
const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const tracer = provider.getTracer("test");

let memory = 0;
let leases: Leases;
let other: Leases;

beforeEach(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  memory += 1;
  leases = await open(`memory:traces-${memory}`);
  other = await open(`memory:traces-${memory}`);
  traceLeases(leases, tracer);
  exporter.reset();
});

afterEach(async () => {
  await leases.close();
  await other.close();
  context.disable();
});

/** Takes the spans that have ended so far. */
function spans(): ReadableSpan[] {
  const all = exporter.getFinishedSpans();
  exporter.reset();
  return all;
}

const named = (all: readonly ReadableSpan[], name: string): ReadableSpan => {
  const found = all.find((span) => span.name === `leasehold.${name}`);
  if (found === undefined) throw new Error(`no span ${name} among ${all.map((span) => span.name).join()}`);
  return found;
};
const idOf = (span: ReadableSpan): string => span.spanContext().spanId;
const linksOf = (span: ReadableSpan): string[] => span.links.map(({ context: { spanId } }) => spanId);

/** Runs the function within a span of the program. */
const within = <T>(run: (span: Span) => Promise<T>): Promise<T> =>
  tracer.startActiveSpan("program", async (span) => run(span).finally(() => span.end()));

test("acquire and release are children of what is active where each call begins", async () => {
  const lease = await within(() => leases.acquire("a"));
  const [acquire, first] = spans();
  expect(acquire).toMatchObject({
    name: "leasehold.acquire",
    attributes: {
      "leasehold.resource": "a",
      "leasehold.ground": "memory",
      "leasehold.outcome": "acquired",
      "leasehold.token": String(lease.token),
    },
    status: { code: SpanStatusCode.UNSET },
    events: [],
    links: [],
  });
  expect(acquire!.parentSpanContext?.spanId).toBe(idOf(first!));
  await within(() => lease.release());
  const [release, second] = spans();
  expect(release!.name).toBe("leasehold.release");
  expect(release!.parentSpanContext?.spanId).toBe(idOf(second!));
  expect(linksOf(release!)).toEqual([idOf(acquire!)]);
});

test("the work of using and lead runs inside their spans, with acquire and release beside it", async () => {
  await leases.using("a", () => within(async () => undefined));
  await leases.lead("b", () => within(async () => undefined));
  await leases.using(["c", "d"], async () => undefined);
  const all = spans();
  const parents = all.map(({ name, parentSpanContext }) => {
    const parent = all.find((span) => idOf(span) === parentSpanContext?.spanId);
    return `${name.replace("leasehold.", "")} < ${parent?.name.replace("leasehold.", "") ?? "none"}`;
  });
  const one = (name: string) => [
    `acquire < ${name}`,
    `program < ${name}`,
    `release < ${name}`,
    `${name} < none`,
  ];
  expect(parents).toEqual([
    ...one("using"),
    ...one("lead"),
    "acquire < using",
    "acquire < using",
    "release < using",
    "release < using",
    "using < none",
  ]);
});

test("a caller that waits is linked to the holder, here or elsewhere, and says that it waited", async () => {
  traceLeases(other, tracer);
  const held = await other.acquire("a");
  const [holder] = spans();
  expect((await leases.holder("a")).data).toEqual({
    traceparent: `00-${holder!.spanContext().traceId}-${idOf(holder!)}-01`,
  });
  const waiting = leases.acquire("a");
  await new Promise((resolve) => setTimeout(resolve, 20));
  await held.release();
  const lease = await waiting;
  const acquire = named(spans(), "acquire");
  expect(linksOf(acquire)).toEqual([idOf(holder!)]);
  expect(acquire.links[0]!.context.isRemote).toBe(true);
  expect(acquire.events.map(({ name }) => name)).toEqual(["wait"]);
  // Waits behind this program's own lease.
  const next = leases.acquire("a");
  await new Promise((resolve) => setTimeout(resolve, 5));
  await lease.release();
  await (await next).release();
  expect(linksOf(named(spans(), "acquire"))).toEqual([idOf(acquire)]);
});

test.each(["delta+memory:traces", "flease+memory:traces"])("waiters on %s are linked too", async (url) => {
  const [holder, waiter] = [await open(url), await open(url)];
  traceLeases(holder, tracer);
  traceLeases(waiter, tracer);
  const held = await holder.acquire("a");
  const [acquired] = spans();
  const waiting = waiter.acquire("a");
  await new Promise((resolve) => setTimeout(resolve, 50));
  await held.release();
  await (await waiting).release();
  expect(linksOf(named(spans(), "acquire"))).toEqual([idOf(acquired!)]);
  await holder.close();
  await waiter.close();
});

test("data of the program stays as it is, and a traceparent in it is a link; anything else is none", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const cases: [{ traceparent: string } | string[] | undefined, string[]][] = [
    [{ traceparent: `00-${traceId}-b7ad6b7169203331-01` }, ["b7ad6b7169203331"]],
    [{ traceparent: `01-${traceId}-b7ad6b7169203331-00-more` }, ["b7ad6b7169203331"]],
    [{ traceparent: `00-${traceId}-0000000000000000-01` }, []],
    [{ traceparent: `00-${traceId}-b7ad6b7169203331-01-${"a".repeat(100)}` }, []],
    [{ traceparent: `ff-${traceId}-b7ad6b7169203331-01` }, []],
    [["traceparent"], []],
    [undefined, []],
  ];
  for (const [data, links] of cases) {
    const held = await other.acquire("a", { data });
    const waiting = leases.acquire("a");
    await new Promise((resolve) => setTimeout(resolve, 5));
    await held.release();
    await (await waiting).release();
    expect(linksOf(named(spans(), "acquire"))).toEqual(links);
  }
  const own = await leases.acquire("a", { data: { region: "x" } });
  expect((await other.holder("a")).data).toEqual({ region: "x" });
  await own.release();
});

test("errors set the status and the code, and none of the program's own text is in a span", async () => {
  const held = await other.acquire("a");
  await leases.acquire("a", { wait: 10 }).catch(() => undefined);
  expect(named(spans(), "acquire")).toMatchObject({
    attributes: { "leasehold.outcome": "timeout", "error.type": "TIMEOUT" },
    status: { code: SpanStatusCode.ERROR, message: expect.stringMatching(/^waited 10ms for "a"/) },
  });
  expect(await leases.tryAcquire("a")).toBeUndefined();
  const aborted = AbortSignal.abort(new Error("no"));
  await leases.acquire("a", { signal: aborted }).catch(() => undefined);
  const [tried, gone] = spans();
  for (const [span, outcome] of [
    [tried, "held"],
    [gone, "aborted"],
  ] as const)
    expect(span).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      attributes: { "leasehold.outcome": outcome },
    });
  await held.release();
  const failing = leases.using("a", () => {
    throw new RangeError("password");
  });
  await expect(failing).rejects.toThrow("password");
  const using = named(spans(), "using");
  expect(using).toMatchObject({
    attributes: { "error.type": "RangeError" },
    status: { code: SpanStatusCode.ERROR },
  });
  expect(JSON.stringify([using.attributes, using.status, using.events])).not.toContain("password");
});

test("only renewals at risk have a span: until the lease is renewed, lost or released", async () => {
  const cluster = new MemoryCluster();
  const traced = cluster.open("alice");
  const stop = traceLeases(traced, tracer);
  const lease = await traced.acquire("a", { ttl: "12s" });
  const acquire = named(spans(), "acquire");
  await cluster.advance("60s");
  expect(spans()).toEqual([]);
  cluster.cutOff("alice");
  await cluster.advance("8s");
  cluster.reconnect("alice");
  await cluster.advance("10s");
  const [renewed] = spans();
  expect(renewed).toMatchObject({ name: "leasehold.renew", status: { code: SpanStatusCode.UNSET } });
  expect(renewed!.attributes).toMatchObject({ "leasehold.outcome": "renewed", "leasehold.resource": "a" });
  expect(renewed!.attributes["leasehold.remaining_ms"]).toBeGreaterThan(4_000);
  expect(linksOf(renewed!)).toEqual([idOf(acquire)]);
  cluster.cutOff("alice");
  await cluster.advance("20s");
  const [lost, ...none] = spans();
  expect(none).toEqual([]);
  expect(lost).toMatchObject({
    name: "leasehold.renew",
    attributes: { "leasehold.outcome": "expired", "error.type": "LEASE_LOST" },
    status: { code: SpanStatusCode.ERROR },
  });
  expect(lease.remaining()).toBe(0);
  cluster.reconnect("alice");
  await cluster.advance("20s");
  await traced.acquire("b", { ttl: "12s" });
  cluster.cutOff("alice");
  await cluster.advance("6s");
  spans();
  // The span of a late lease is ended when tracing ends.
  stop();
  expect(spans().map(({ name }) => name)).toEqual(["leasehold.renew"]);
  await cluster.close();
});

test("a counted lease with many holders asks and links a bounded number of times", async () => {
  traceLeases(other, tracer);
  const held = [];
  for (let slot = 0; slot < 20; slot += 1) held.push(await other.acquire("a", { limit: 20 }));
  const waiting = leases.acquire("a", { limit: 20 });
  await new Promise((resolve) => setTimeout(resolve, 20));
  spans();
  for (const lease of held) await lease.release();
  await (await waiting).release();
  expect(named(spans(), "acquire").links.length).toBe(8);
});

test.each([
  ["is not recorded", new AlwaysOffSampler()],
  [
    "is recorded only",
    { shouldSample: () => ({ decision: SamplingDecision.RECORD }), toString: () => "records" },
  ],
])("what %s is in no trace, and costs no data", async (_title, sampler) => {
  const unsampled = new BasicTracerProvider({ sampler });
  traceLeases(other, unsampled.getTracer("test"));
  const lease = await other.acquire("a");
  expect((await leases.holder("a")).data).toBeUndefined();
  await lease.release();
});

test("a second tracer and foreign leases are refused", () => {
  expect(() => traceLeases(leases, trace.getTracer("none"))).toThrow(LeaseholdError);
  expect(() => traceLeases({ ...leases } as Leases, tracer)).toThrow(LeaseholdError);
  expect(spans()).toEqual([]);
});
