import type { Metrics, Served } from "../../entry/metrics.js";

/** Serves the metrics of this process, if it was told where. They are loaded only then. */
export async function serveMetrics(
  address: string | undefined,
  observe: (metrics: Metrics) => void,
): Promise<Served | undefined> {
  if (address === undefined) return undefined;
  const { createMetrics } = await import("../../entry/metrics.js");
  const metrics = createMetrics();
  metrics.observeProcess();
  observe(metrics);
  const served = await metrics.serve(address);
  // A parent takes the last line of its child for the reason of its end.
  if (process.send === undefined)
    process.stderr.write(`leasehold: metrics and health at http://${served.address}/metrics, /readyz\n`);
  return served;
}
