import { expect, test } from "vitest";
import { MemoryCluster } from "../testing/memory-cluster.js";
import { logLeases } from "./lease-logs.js";
import { lineLogger } from "./line-logger.js";

test("what happens to leases is logged with resource, holder and token", async () => {
  const cluster = new MemoryCluster();
  const leases = cluster.open("a");
  const lines: unknown[] = [];
  const logger = lineLogger({ write: (line) => lines.push(JSON.parse(line)) });
  const stop = logLeases(leases, logger, cluster.world.clock);
  const first = await leases.acquire("x");
  await cluster.advance("100ms");
  await first.release();
  const { holder, token } = first;
  const about = { resource: "x", holder, token: String(token) };
  expect(lines.splice(0)).toMatchObject([
    { event: "lease-acquired", level: "info", ...about },
    { event: "lease-released", level: "info", ...about, heldMs: 100 },
  ]);
  const other = cluster.open("b");
  const held = await other.acquire("x");
  const late = leases.acquire("x", { wait: "1s" }).catch(() => undefined);
  await cluster.advance("2s");
  await late;
  expect(lines.splice(0)).toMatchObject([{ event: "lease-refused", outcome: "TIMEOUT", resource: "x" }]);
  await held.release();
  const lost = await leases.acquire("x", { ttl: "3s" });
  cluster.cutOff("a");
  await cluster.advance("10s");
  expect(lost.remaining()).toBe(0);
  const token3 = String(lost.token);
  expect(lines.splice(0)).toMatchObject([
    { event: "lease-acquired" },
    { event: "lease-late", level: "warn", token: token3 },
    { event: "lease-lost", level: "error", token: token3, reason: "expired" },
  ]);
  stop();
});
