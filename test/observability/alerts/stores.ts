import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { RedisServer } from "../../stores/servers/redis.js";
import { dist } from "../../support/built.js";
import { FreezableFolder } from "../../support/freezable-folder.js";
import type { Scraped } from "../support.js";
import { repeatedly, type Troubles } from "./troubles.js";

/** A program that acquires and releases leases in a loop. */
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

export const storePorts = 2;

/** Programs with leases on three stores. The third store has all the troubles. */
export async function troubleStores(troubles: Troubles, [redis, folders]: readonly string[]): Promise<void> {
  await Promise.all([troubleRedis(troubles, redis!), troubleFolders(troubles, folders!)]);
}

/** An operation on a file system that hangs stays pending, and further ones are refused. */
async function troubleFolders(troubles: Troubles, at: string): Promise<void> {
  const { scraped } = troubles;
  const [a, b, c] = ["a", "b", "c"].map((name) => join(scraped.folder, `store-${name}`));
  for (const path of [a!, b!]) mkdirSync(path);
  const third = new FreezableFolder(c!);
  const labels = `store=~".*store-c"`;
  try {
    const farm = [`delta+file://${a},${b},${c}?ttlMax=6s`];
    scraped.start(process.execPath, "--input-type=module", "-e", worker(farm, at));
    await acquiresAt(scraped, at);
    await troubles.happen({
      alerts: { StoreSilent: labels, StoreFailing: labels },
      made: "the file system of a directory is frozen (fsfreeze)",
      ended: "thawed",
      make: () => third.freeze(),
      look: () => acquiresAt(scraped, at),
      mend: () => third.thaw(),
    });
  } finally {
    third.unmount();
  }
}

/** Leases need a majority of the farm, which is available throughout. */
async function acquiresAt(scraped: Scraped, at: string): Promise<void> {
  const more = `sum(increase(leasehold_acquisitions_total{instance="${at}",outcome="acquired"}[10s])) > bool 0`;
  expect(await scraped.settled(more, 1)).toBe(1);
}

async function troubleRedis(troubles: Troubles, at: string): Promise<void> {
  const { scraped } = troubles;
  const stores = await Promise.all([1, 2, 3].map(() => RedisServer.start({ durable: true })));
  const third = stores[2]!;
  const labels = `store=~".*:${third.port}.*"`;
  try {
    // With the default of 500 ms an operation would fail before it counts as slow.
    const farm = stores.map((store) => `delta+${store.url().href}&ttlMax=6s&maxStoreLatency=2s`);
    scraped.start(process.execPath, "--input-type=module", "-e", worker(farm, at));
    await acquiresAt(scraped, at);
    const goesOn = () => acquiresAt(scraped, at);

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
      // Redis clients end an operation without an answer themselves, so it doesn't stay pending.
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
