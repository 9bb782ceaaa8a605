import { constants, monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { certificateSources } from "../runtime/security/certificate-ends.js";
import type { Catalogued } from "./catalogue.js";

/** The interval at which the event loop's delay is read, ms. */
const lookMs = 100;

const kinds: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weak callbacks",
};

/**
 * Exports the resources that this process uses and the delay of its event loop. Returns a function that stops
 * it.
 */
export function observeProcess(registry: Catalogued): () => void {
  const loop = monitorEventLoopDelay({ resolution: 10 });
  loop.enable();
  const timer = setInterval(() => {
    // The longest delay since the last reading, which a lease has to outlast.
    const delayS = Math.max(0, loop.max / 1e9 - 0.01);
    if (loop.count > 0) registry.observe("leasehold_event_loop_delay", [], delayS);
    loop.reset();
  }, lookMs).unref();
  const collections = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      registry.observe("leasehold_gc_duration", [kindOf(entry)], entry.duration / 1_000);
  });
  collections.observe({ entryTypes: ["gc"] });
  const startedS = Date.now() / 1_000 - process.uptime();
  const stop = registry.beforeRead(() => {
    const { user, system } = process.cpuUsage();
    registry.set("process_cpu", [], (user + system) / 1e6);
    registry.set("process_resident_memory", [], process.memoryUsage.rss());
    registry.set("process_start_time", [], startedS);
    registry.clear("leasehold_certificate_expiry_time");
    for (const source of certificateSources)
      for (const [file, expiresMs] of source())
        registry.set("leasehold_certificate_expiry_time", [file], expiresMs / 1_000);
  });
  return () => {
    clearInterval(timer);
    loop.disable();
    collections.disconnect();
    stop();
  };
}

function kindOf(entry: object): string {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  const kind = typeof detail === "object" && detail !== null && "kind" in detail ? detail.kind : undefined;
  return (typeof kind === "number" ? kinds[kind] : undefined) ?? "other";
}
