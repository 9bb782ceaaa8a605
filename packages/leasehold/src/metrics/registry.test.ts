import { expect, test } from "vitest";
import { catalogue, fullName } from "./catalogue.js";
import { VirtualWorld } from "../testing/virtual-world.js";
import { exportTo } from "./meter.js";
import type { MeterLike, MetricDefinition } from "./types.js";
import { Registry, seriesMax } from "./registry.js";
import { textOf } from "./text.js";

test("names, units and labels are as Prometheus wants them", () => {
  for (const [name, definition] of Object.entries<MetricDefinition>(catalogue)) {
    expect(fullName(name, definition)).toMatch(/^(leasehold|process)_[a-z_]+[a-z]$/);
    const { help, kind, labels } = definition;
    expect(help).toMatch(/^[A-Z0-9].*[.:]?$/);
    expect(labels.every((label) => /^[a-z]+$/.test(label))).toBe(true);
    expect("buckets" in definition).toBe(kind === "histogram");
  }
});

test("counters, gauges and histograms are written as Prometheus reads them", () => {
  const registry = new Registry(new VirtualWorld().clock);
  registry.add("leasehold_acquisitions", ["acquired"], 2);
  registry.set("leasehold_member_recovery_left", [], 1.5);
  for (const value of [0.2, 0.2, 0.5, 0.9]) registry.observe("leasehold_renewal_slack", [], value);
  const lines = textOf(registry, "prometheus").split("\n");
  expect(lines).toContain("# TYPE leasehold_acquisitions_total counter");
  expect(lines).toContain('leasehold_acquisitions_total{outcome="acquired"} 2');
  expect(lines).toContain("leasehold_member_recovery_left_seconds 1.5");
  expect(lines.filter((line) => line.startsWith("leasehold_renewal_slack"))).toEqual([
    'leasehold_renewal_slack_ratio_bucket{le="0.05"} 0',
    'leasehold_renewal_slack_ratio_bucket{le="0.1"} 0',
    'leasehold_renewal_slack_ratio_bucket{le="0.2"} 2',
    'leasehold_renewal_slack_ratio_bucket{le="0.3"} 2',
    'leasehold_renewal_slack_ratio_bucket{le="0.4"} 2',
    'leasehold_renewal_slack_ratio_bucket{le="0.5"} 3',
    'leasehold_renewal_slack_ratio_bucket{le="0.6"} 3',
    'leasehold_renewal_slack_ratio_bucket{le="0.7"} 3',
    'leasehold_renewal_slack_ratio_bucket{le="+Inf"} 4',
    "leasehold_renewal_slack_ratio_sum 1.8",
    "leasehold_renewal_slack_ratio_count 4",
  ]);
});

test("OpenMetrics has units, an end, and a resource for each bucket, whatever its name", () => {
  const world = new VirtualWorld();
  const registry = new Registry(world.clock);
  registry.observe("leasehold_hold_duration", [], 0.001, 'a"\\\n');
  registry.observe("leasehold_hold_duration", [], 0.001, "second");
  registry.observe("leasehold_hold_duration", [], 5, "ä".repeat(512));
  const lines = textOf(registry, "openmetrics").split("\n");
  expect(lines).toContain("# UNIT leasehold_hold_duration_seconds seconds");
  expect(lines.at(-2)).toBe("# EOF");
  const at = (world.clock.wallMs() / 1_000).toFixed(3);
  expect(lines).toContain(
    `leasehold_hold_duration_seconds_bucket{le="0.01"} 2 # {resource="a\\"\\\\\\n"} 0.001 ${at}`,
  );
  const exemplars = lines.flatMap((line) => /resource="(.*)"/.exec(line)?.[1] ?? []);
  expect(exemplars.at(-1)).toBe(`${"ä".repeat(99)}…`);
  expect(textOf(registry, "prometheus")).not.toContain("resource=");
});

test("a label with 200 values takes no 201st: the rest is counted together", () => {
  const registry = new Registry(new VirtualWorld().clock);
  for (let number = 0; number < seriesMax + 50; number += 1)
    registry.add("leasehold_member_events", [`reason${number}`]);
  const series = registry.read().get("leasehold_member_events")!;
  expect(series).toHaveLength(seriesMax + 1);
  expect(series.at(-1)).toMatchObject({ labels: ["other"], value: 50 });
});

test("a meter of OpenTelemetry gets counters and gauges when it asks, and each observation", () => {
  const registry = new Registry(new VirtualWorld().clock);
  const recorded: unknown[] = [];
  let read: Parameters<MeterLike["addBatchObservableCallback"]>[0] | undefined;
  const observable = (name: string) => ({ name });
  const meter: MeterLike = {
    createHistogram: (name, { unit }) => ({
      record: (value, attributes) => recorded.push([name, unit, value, attributes]),
    }),
    createObservableCounter: observable,
    createObservableGauge: observable,
    addBatchObservableCallback: (callback) => (read = callback),
    removeBatchObservableCallback: (callback) => (read = read === callback ? undefined : read),
  };
  const stop = exportTo(meter, registry);
  registry.add("leasehold_acquisitions", ["held"]);
  registry.observe("leasehold_hold_duration", [], 3);
  registry.beforeRead(() => registry.set("leasehold_leases_held", [], 7));
  read!({ observe: (instrument, value, attributes) => recorded.push([instrument, value, attributes]) });
  expect(recorded).toEqual([
    ["leasehold.hold.duration", "s", 3, {}],
    [{ name: "leasehold.acquisitions" }, 1, { outcome: "held" }],
    [{ name: "leasehold.leases.held" }, 7, {}],
  ]);
  stop();
  registry.observe("leasehold_hold_duration", [], 3);
  expect(recorded).toHaveLength(3);
  expect(read).toBeUndefined();
});

test("metrics that a program defines are shown after the others, and brought to its meter", () => {
  const registry = new Registry(new VirtualWorld().clock);
  const own = registry.define({
    reports_written: { kind: "counter", unit: "", labels: ["kind"], help: "Reports." },
    reports_size: { kind: "histogram", unit: "bytes", labels: [], help: "Their sizes.", buckets: [1_000] },
  });
  own.add("reports_written", ["daily"]);
  own.observe("reports_size", [], 1_001);
  registry.add("leasehold_renewals", []);
  const lines = textOf(registry, "prometheus").split("\n");
  const names = lines.flatMap((line) => /^# TYPE (\w+)/.exec(line)?.[1] ?? []);
  expect(names).toEqual(["leasehold_renewals_total", "reports_written_total", "reports_size_bytes"]);
  expect(lines).toContain('reports_size_bytes_bucket{le="1000"} 0');
  expect(lines).toContain('reports_size_bytes_bucket{le="+Inf"} 1');
});
