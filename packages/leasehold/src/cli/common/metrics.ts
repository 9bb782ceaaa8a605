import type { Metrics, Served } from "../../entry/metrics.js";
import { eventLog } from "../../runtime/log-events.js";
import type { Logger } from "../../runtime/logger.js";

/** Serves the metrics of this process if an address was given. The code is loaded only then. */
export async function serveMetrics(
  address: string | undefined,
  observe: (metrics: Metrics) => unknown,
  logger?: Logger,
): Promise<Served | undefined> {
  if (address === undefined) return undefined;
  const { createMetrics } = await import("../../entry/metrics.js");
  const metrics = createMetrics();
  metrics.observeProcess();
  observe(metrics);
  const served = await metrics.serve(address);
  const text = `metrics and health at http://${served.address}/metrics, /readyz`;
  if (logger !== undefined) eventLog(logger).log("metrics-listening", text, { address: served.address });
  // A parent treats its child's last line as the reason why it ended.
  else if (process.send === undefined) process.stderr.write(`leasehold: ${text}\n`);
  return served;
}
