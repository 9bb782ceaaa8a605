import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { RedisServer } from "../../stores/servers/redis.js";
import { dist } from "../../support/built.js";
import { repeatedly, type Troubles } from "./troubles.js";

/** A program that takes one lease after another. */
const worker = (farm: readonly string[], metrics: string) => `
  import { open } from ${JSON.stringify(join(dist, "index.js"))};
  import { createMetrics } from ${JSON.stringify(join(dist, "entry/metrics.js"))};
  const metrics = createMetrics();
  metrics.observeProcess();
  await metrics.serve("${metrics}");
  let leases;
  // On a busy machine, the stores may answer too late.
  while (leases === undefined)
    leases = await open(...${JSON.stringify(farm)}, { timeout: "100s" }).catch(() => undefined);
  metrics.observe(leases);
  for (;;) {
    await leases.using("jobs/a", () => new Promise((resolve) => setTimeout(resolve, 500))).catch(() => undefined);
  }
`;

export const storePorts = 1;

/** A program with leases on three servers of Redis, of which the third has all the trouble. */
export async function troubleStores(troubles: Troubles, at: readonly string[]): Promise<void> {
  const { scraped } = troubles;
  const stores = await Promise.all([1, 2, 3].map(() => RedisServer.start({ durable: true })));
  const third = stores[2]!;
  const labels = `store=~".*:${third.port}.*"`;
  try {
    const farm = stores.map((store) => `delta+${store.url().href}&ttlMax=6s`);
    scraped.start(process.execPath, "--input-type=module", "-e", worker(farm, at[0]!));
    const acquired = 'sum(leasehold_acquisitions_total{job="stores",outcome="acquired"}) > bool 2';
    expect(await scraped.settled(acquired, 1)).toBe(1);
    // Leases need a majority of the farm, which is there all the time.
    const goesOn = async (): Promise<void> => {
      const more =
        'sum(increase(leasehold_acquisitions_total{job="stores",outcome="acquired"}[10s])) > bool 0';
      expect(await scraped.settled(more, 1)).toBe(1);
    };

    let end = (): Promise<void> => Promise.resolve();
    await troubles.happen({
      alerts: { StoreSlow: labels },
      made: "a Redis is stopped for 2 s of each 3 (SIGSTOP)",
      ended: "no more stopped",
      make: () => {
        end = repeatedly(async () => {
          third.freeze();
          await sleep(2_000);
          third.thaw();
          await sleep(1_000);
        });
      },
      look: goesOn,
      mend: () => end(),
    });
    await troubles.happen({
      // Clients of Redis end an operation without an answer themselves, so that it doesn't stay pending.
      alerts: { StoreFailing: labels },
      made: "a Redis is stopped (SIGSTOP)",
      ended: "it goes on",
      make: () => third.freeze(),
      look: goesOn,
      mend: () => third.thaw(),
    });
    await troubles.happen({
      alerts: { StoreFailing: labels },
      made: "a Redis is killed",
      ended: "it is started",
      make: () => third.kill(),
      look: async () => {
        const outcomes = await scraped.labels(
          `increase(leasehold_store_operation_duration_seconds_count{${labels},outcome!~"ok|conflict"}[10s]) > 0`,
        );
        expect(outcomes.map(({ outcome }) => outcome)).toContain("store_unavailable");
        await goesOn();
      },
      mend: () => third.restart(),
    });
  } finally {
    for (const store of stores) store.thaw();
    await Promise.all(stores.map((store) => store.close()));
  }
}
