import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { figures } from "./size-figures.js";
import { sizesOf } from "./size.js";

interface Results {
  readonly at: string;
  readonly rows: readonly { figure: string; system: string; inFlight?: number; median: number }[];
}

test("the figures are those that the benchmarks wrote last", () => {
  const path = new URL("../../../../../bench/results/latest.json", import.meta.url);
  const { at, rows } = JSON.parse(readFileSync(path, "utf8")) as Results;
  const median = (figure: string, system: string) =>
    rows.find((row) => row.figure === figure && row.system === system && (row.inFlight ?? 512) === 512)
      ?.median;
  expect(figures.measured).toBe(at.slice(0, 10));
  for (const [ground, system] of [
    ["flease", "leasehold (certificates)"],
    ["core", "leasehold core"],
  ] as const)
    expect(figures[ground]).toMatchObject({
      serverBytes: median("held lease, member", system),
      clientBytes: median("held lease, client", system),
      serverUs: median("renew CPU, servers", system),
      clientUs: median("renew CPU, client", system),
    });
});

test("a million leases of ten seconds are sized by them", () => {
  const { flease, core, delta } = sizesOf(1e6, 10_000, 1);
  const { serverBytes, serverUs, processBytes, wireBytes } = figures.flease;
  const processors = (3e5 * serverUs) / 3 / 1e6;
  expect(flease).toMatchObject({ clusters: Math.ceil(processors / 0.5), serversEach: 3, diskBytes: 0 });
  expect(flease.processors).toBeCloseTo(processors / flease.clusters);
  expect(flease.memoryBytes).toBeCloseTo(1.5 * (processBytes + (1e6 / flease.clusters) * serverBytes));
  expect(flease.bytesPerS).toBeCloseTo((3e5 / flease.clusters) * (wireBytes / 3));
  expect(core.processors).toBeLessThanOrEqual(0.5);
  expect(delta).toEqual({ clusters: 1, serversEach: 3, diskBytes: 1e6 * figures.delta.cellBytes });
  expect(sizesOf(1, 60_000, 2)).toMatchObject({ flease: { clusters: 1, serversEach: 5, clients: 1 } });
});
