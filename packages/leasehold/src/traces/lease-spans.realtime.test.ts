import { context } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { traceLeases } from "../entry/traces.js";
import { open, startMember } from "../index.js";
import { freePorts } from "../../../../test/free-ports.js";

test("a waiter among peers is linked to its holder", async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tracer = provider.getTracer("test");
  const ports = await freePorts(3);
  const members = Object.fromEntries(ports.map((port, at) => [`m${at}`, `127.0.0.1:${port}`]));
  const timing = { ttlMax: "1s", maxClockSkew: "100ms" } as const;
  const started = await Promise.all(
    Object.keys(members).map((id) => startMember({ ...timing, id, members })),
  );
  await Promise.all(started.map((member) => member.ready()));
  const url = `flease://127.0.0.1:${ports[0]}`;
  const [holder, waiter] = [await open(url), await open(url)];
  for (const each of [holder, waiter]) traceLeases(each, tracer);
  const held = await holder.acquire("a");
  const waiting = waiter.acquire("a");
  await new Promise((resolve) => setTimeout(resolve, 200));
  await held.release();
  await (await waiting).release();
  const [first, ...rest] = exporter.getFinishedSpans();
  const last = rest.find(({ name }) => name === "leasehold.acquire");
  expect(last?.links.map((link) => link.context.spanId)).toEqual([first?.spanContext().spanId]);
  expect(last?.events).toMatchObject([{ name: "wait", attributes: { "leasehold.holder": held.holder } }]);
  for (const each of [holder, waiter, ...started]) await each.close();
  context.disable();
});
