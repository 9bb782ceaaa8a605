import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { createMetrics } from "../entry/metrics.js";
import { open } from "../index.js";
import { catalogue } from "./catalogue.js";

test("the real SDK gets every metric with its unit, its buckets and the numbers of Prometheus", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  const leases = await open("memory:meter");
  const metrics = createMetrics();
  const stopped = metrics.exportTo(provider.getMeter("leasehold"));
  const stops = [metrics.observe(leases), metrics.observeProcess()];
  const held = await leases.acquire("a");
  await leases.using("b", () => undefined);
  expect(await leases.tryAcquire("a")).toBeUndefined();
  const collected = async (): Promise<Map<string, MetricData>> => {
    exporter.reset();
    await provider.forceFlush();
    const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return new Map(all.flatMap((scope) => scope.metrics).map((each) => [each.descriptor.name, each]));
  };
  const found = await collected();
  const values = (name: string) =>
    found.get(name)?.dataPoints.map(({ attributes, value }) => ({ ...attributes, value }));
  expect(values("leasehold.leases.held")).toEqual([{ value: 1 }]);
  expect(values("leasehold.waiters")).toEqual([{ value: 0 }]);
  expect(values("leasehold.acquisitions")).toEqual([
    { outcome: "acquired", value: 2 },
    { outcome: "held", value: 1 },
  ]);
  const units = { "": "", seconds: "s", bytes: "By", ratio: "1" };
  const types = {
    counter: DataPointType.SUM,
    gauge: DataPointType.GAUGE,
    histogram: DataPointType.HISTOGRAM,
  };
  for (const [name, { kind, unit, help }] of Object.entries(catalogue)) {
    const metric = found.get(name.replaceAll("_", "."));
    if (metric === undefined) continue;
    expect(metric).toMatchObject({
      descriptor: { unit: units[unit], description: help },
      dataPointType: types[kind],
      ...(kind === "counter" ? { isMonotonic: true } : {}),
    });
  }
  const durations = found.get("leasehold.acquisition.duration");
  if (durations?.dataPointType !== DataPointType.HISTOGRAM) throw new Error("no histogram of durations");
  expect(durations.dataPoints.map(({ attributes, value }) => [attributes, value.count])).toEqual([
    [{ outcome: "acquired" }, 2],
    [{ outcome: "held" }, 1],
  ]);
  const { buckets } = catalogue.leasehold_acquisition_duration;
  expect(durations.dataPoints[0]?.value.buckets.boundaries).toEqual(buckets);
  // Nothing is counted from here on.
  stopped();
  await leases.using("c", () => undefined);
  const after = (await collected()).get("leasehold.acquisition.duration")?.dataPoints[0];
  expect(after?.value).toMatchObject({ count: 2 });
  for (const stop of stops) stop();
  await held.release();
  await leases.close();
  await provider.shutdown();
});
