import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { RedisServer } from "../stores/servers/redis.js";
import { dist } from "../support/built.js";
import { Holders, testFolder } from "./programs.js";
import { formerRelease, hasHistory, releaseMsMax, releaseOf } from "./releases.js";

/**
 * Holders of the previous release and of this one on the same stores, side by side and one after the other.
 */

const ttlMs = 15_000;
const redis: RedisServer[] = [];
afterAll(() => Promise.all(redis.map((server) => server.close())));

const places: Record<string, (folder: string) => Promise<string> | string> = {
  "Δ-leases on directories": (folder) => `delta+${directories(folder)}`,
  "Δ-leases on Redis": async () => `delta+${await redisUrl()}`,
  "Flease on directories": (folder) => `flease+${directories(folder)}`,
};

function directories(folder: string): string {
  const names = ["x", "y", "z"].map((name) => join(folder, name));
  for (const name of names) mkdirSync(name);
  return `file://${names.join()}`;
}

async function redisUrl(): Promise<string> {
  const server = await RedisServer.start();
  redis.push(server);
  return `redis://127.0.0.1:${server.port}`;
}

describe.runIf(hasHistory(formerRelease))("old and new holders", () => {
  test.each(Object.entries(places))(
    "on %s take turns, and no lease is lost or has two holders",
    async (name, place) => {
      if (name.endsWith("Redis") && !existsSync("/usr/bin/redis-server")) return;
      const folder = testFolder();
      const before = releaseOf(formerRelease);
      const holders = new Holders(await place(folder), folder, ttlMs);
      await holders.start("first", before);
      await holders.start("second", before);
      await holders.start("third", dist);
      await holders.takeTurns();
      await holders.end("first");
      await holders.start("fourth", dist);
      await holders.takeTurns();
      await holders.end("second");
      await holders.takeTurns();
      // Rollback: the previous release reads what this one has written.
      await holders.end("third");
      await holders.start("fifth", before);
      await holders.takeTurns();
      await holders.end("fourth");
      await holders.takeTurns();
      await holders.endAll();
      expect(holders.tenures).toBeGreaterThan(20);
    },
    releaseMsMax,
  );
});
