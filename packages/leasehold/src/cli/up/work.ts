/**
 * A worker of the local cluster: a process that acquires one lease after another, for ever. It ends with its
 * parent, however that ends, because the channel between them closes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseholdError } from "../../lease/errors.js";
import type { Lease, Leases } from "../../lease/types.js";
import { open } from "../../index.js";
import { serveMetrics } from "../common/metrics.js";
import { notifyParent } from "../common/parent-process.js";
import { stopRequested } from "../common/stop-requested.js";
import type { WorkerNews, WorkerOrders } from "./news.js";
import { few } from "../../common/lists.js";

const HOLD_MS_MIN = 2_000;
const HOLD_MS_MAX = 8_000;
/**
 * The longest pause between two leases, so that a worker does not always reacquire the lease that it just
 * released.
 */
const PAUSE_MS_MAX = 600;
/**
 * The shortest wait before a worker tries another resource; otherwise all would soon queue for the same one.
 */
const WAIT_MS_MIN = 2_000;
const WAIT_MS_MAX = 6_000;
const OPEN_TIMEOUT_MS = 10_000;
/** The pause after a fault: the cluster may be starting, or may have lost its majority. */
const RETRY_MS = 500;
/** Time limit of the last release, which takes a few milliseconds. */
const END_MS_MAX = 1_000;

const stop = new AbortController();

function report(news: WorkerNews): void {
  notifyParent(news);
}

function between(min: number, max: number): number {
  return min + Math.random() * (max - min);
}

/** Sleeps; wakes early, without an error, when one of the signals aborts. */
async function rest(ms: number, ...signals: AbortSignal[]): Promise<void> {
  await sleep(ms, undefined, { signal: AbortSignal.any([stop.signal, ...signals]) }).catch(() => undefined);
}

async function holdOne(leases: Leases, resource: string): Promise<void> {
  const askedMs = performance.now();
  report({ type: "waiting", resource });
  const lease = await leases.acquire(resource, {
    wait: between(WAIT_MS_MIN, WAIT_MS_MAX),
    signal: stop.signal,
  });
  const heldFromMs = performance.now();
  const token = String(lease.token);
  report({ type: "acquired", resource, token, waitedMs: heldFromMs - askedMs });
  await rest(between(HOLD_MS_MIN, HOLD_MS_MAX), lease.signal);
  await giveBack(lease, token, heldFromMs);
}

async function giveBack(lease: Lease, token: string, heldFromMs: number): Promise<void> {
  const { resource } = lease;
  if (lease.remaining() === 0) {
    report({ type: "lost", resource, token, reason: String(lease.signal.reason?.message ?? "it ran out") });
    return;
  }
  await lease.release();
  report({ type: "released", resource, token, heldMs: performance.now() - heldFromMs });
}

async function work({ name, endpoints, resources, metricsAddress }: WorkerOrders): Promise<void> {
  const leases = await open(...few(endpoints), { name, timeout: OPEN_TIMEOUT_MS });
  await serveMetrics(metricsAddress, (metrics) => void metrics.observe(leases));
  report({ type: "started", holder: leases.self });
  let served = false;
  while (!stop.signal.aborted) {
    const resource = resources[Math.floor(Math.random() * resources.length)] ?? "demo";
    try {
      await holdOne(leases, resource);
      served = true;
      await rest(between(0, PAUSE_MS_MAX));
    } catch (error) {
      if (stop.signal.aborted) break;
      const code = error instanceof LeaseholdError ? error.code : undefined;
      if (code === "TIMEOUT") continue;
      // The members are still in their recovery wait, which the screen shows.
      const expected = code === "NO_QUORUM" && !served;
      if (!expected) report({ type: "trouble", message: (error as Error).message });
      await rest(RETRY_MS);
    }
  }
  await leases.close();
}

function end(): void {
  stop.abort();
  setTimeout(() => process.exit(0), END_MS_MAX).unref();
}

void stopRequested().then(end);

try {
  await work(JSON.parse(process.argv[2] ?? "{}") as WorkerOrders);
  process.exit(0);
} catch (error) {
  report({ type: "trouble", message: (error as Error).message });
  process.exit(1);
}
