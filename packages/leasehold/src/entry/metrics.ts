/**
 * Metrics: `leasehold/metrics`. Metrics of a program's leases, for Prometheus and OpenTelemetry.
 * `docs/metrics.md` lists them.
 */
import type { Member } from "../flease/tcp/types.js";
import type { Leases } from "../lease/types.js";
import { type Check, memberChecks } from "../metrics/health.js";
import { observeLeases } from "../metrics/lease-metrics.js";
import { observeMember } from "../metrics/member-metrics.js";
import { exportTo } from "../metrics/meter.js";
import { observeProcess } from "../metrics/process-metrics.js";
import { Registry } from "../metrics/registry.js";
import { serve } from "../metrics/serve.js";
import { observeStores } from "../metrics/store-metrics.js";
import { textOf } from "../metrics/text.js";
import { turnClock } from "../metrics/turn-clock.js";
import type { MeterLike, MetricDefinitions, Recorder, Served, TextFormat } from "../metrics/types.js";
import { parseAddress } from "../runtime/address.js";
import { realWorld } from "../runtime/world.js";

export type { Check } from "../metrics/health.js";
export type {
  LabelValues,
  MeterLike,
  MetricDefinition,
  MetricDefinitions,
  RecordedSeries,
  Recorder,
  Served,
  TextFormat,
} from "../metrics/types.js";

/** The metrics of one process. Each metric has at most 200 series; no label contains a resource's name. */
export interface Metrics {
  /**
   * Counts the events of a participant's leases from now on. Leases that it already holds are not counted.
   *
   * @returns a function that ends it
   */
  observe(leases: Leases): () => void;
  /** Exports the status of a Flease member in this process. Returns a function that stops it. */
  observeMember(member: Member): () => void;
  /**
   * Adds the program's own checks to `/readyz`, which are run at each request. Returns a function that
   * removes them.
   */
  observeHealth(checks: () => readonly Check[] | Promise<readonly Check[]>): () => void;
  /**
   * Exports this process's memory, processor time, event loop delay and garbage collection, and its
   * operations on stores. Call it once per process.
   *
   * @returns a function that ends it
   */
  observeProcess(): () => void;
  /**
   * Adds metrics of the program or of another package. Call it before `exportTo`.
   *
   * @example
   * ```ts
   * import { createMetrics } from "leasehold/metrics";
   *
   * const metrics = createMetrics();
   * const reports = metrics.define({
   *   reports_written: { kind: "counter", unit: "", labels: ["kind"], help: "Reports that were written." },
   * });
   * reports.add("reports_written", ["daily"]);
   * console.log(metrics.text().includes('reports_written_total{kind="daily"} 1')); // true
   * ```
   */
  define<const All extends MetricDefinitions>(definitions: All): Recorder<All>;
  /**
   * All metrics in a text format of Prometheus. `"openmetrics"` has exemplars: for each bucket a recent
   * observation with its resource's name. Default `"prometheus"`.
   */
  text(format?: TextFormat): string;
  /**
   * Exports all metrics to a meter of OpenTelemetry: `metrics.getMeter("leasehold")` of `@opentelemetry/api`.
   * Names have dots instead of underscores.
   *
   * @returns a function that ends it
   */
  exportTo(meter: MeterLike): () => void;
  /**
   * Serves `/metrics`, in the format that the scraper accepts, `/livez`, `/readyz` and `/healthz` (the same)
   * over HTTP, without keeping the process alive. `/readyz` is 503 while an observed member has no vote, and
   * says why; `/readyz?verbose` lists every check.
   *
   * @param address `host:port`; the port 0 takes a free one. The server shows names of resources and does not
   *   authenticate clients: choose a loopback address, or one that only the scraper can reach.
   * @throws LeaseholdError `INVALID_URL`; `INVALID_CONFIG` if the server cannot listen at the address.
   */
  serve(address: string): Promise<Served>;
}

/**
 * Creates the metrics of this process, which are empty until something is observed.
 *
 * @example
 * ```ts
 * import { open } from "leasehold";
 * import { createMetrics } from "leasehold/metrics";
 *
 * const leases = await open("memory:");
 * const metrics = createMetrics();
 * metrics.observe(leases);
 * const { address, close } = await metrics.serve("127.0.0.1:0");
 * await leases.using("reports/nightly", () => undefined);
 * const text = await (await fetch(`http://${address}/metrics`)).text();
 * console.log(text.includes('leasehold_acquisitions_total{outcome="acquired"} 1')); // true
 * await close();
 * await leases.close();
 * ```
 */
export function createMetrics(): Metrics {
  const registry = new Registry(realWorld().clock);
  const members = new Set<Member>();
  const others = new Set<() => readonly Check[] | Promise<readonly Check[]>>();
  return {
    observe: (leases) => observeLeases(leases, registry, turnClock(realWorld().clock)),
    observeMember: (member) => {
      members.add(member);
      const stop = observeMember(member, registry);
      return () => {
        members.delete(member);
        stop();
      };
    },
    observeHealth: (checks) => {
      others.add(checks);
      return () => void others.delete(checks);
    },
    observeProcess: () => {
      const stops = [observeProcess(registry), observeStores(registry)];
      return () => {
        for (const stop of stops) stop();
      };
    },
    define: (definitions) => registry.define(definitions),
    text: (format = "prometheus") => textOf(registry, format),
    exportTo: (meter) => exportTo(meter, registry),
    serve: async (address) => {
      const checks = async () => [
        ...[...members].flatMap((member) => memberChecks(member.status())),
        ...(await Promise.all([...others].map((each) => each()))).flat(),
      ];
      return serve({ registry, ...parseAddress(address), checks });
    },
  };
}
