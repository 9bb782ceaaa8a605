import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { alive, runProgram } from "../support/alive.js";
import { packagesFolder } from "../support/built.js";
import { type LocalCluster, startLocalCluster } from "../support/local-cluster.js";
import type { RunningCore } from "../../packages/core/src/server/config/flags.js";

/**
 * What keeps a process alive, on every ground: a waiting call and a held lease do, leases that are only open
 * don't. Stores that need a server are in `test/stores/alive.test.ts`.
 */

let folder: string;
let cluster: LocalCluster;
let core: RunningCore;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-alive-"));
  for (const name of ["a", "b", "c"]) mkdirSync(join(folder, name));
  const [client, peer] = await freePorts(2);
  const { startCore } = (await import(
    pathToFileURL(join(packagesFolder, "core", "dist", "index.js")).href
  )) as typeof import("../../packages/core/src/index.js");
  [cluster, core] = await Promise.all([
    startLocalCluster(),
    startCore({
      name: "alive",
      dataDir: join(folder, "core"),
      listenClientUrls: `http://127.0.0.1:${client}`,
      advertiseClientUrls: `http://127.0.0.1:${client}`,
      listenPeerUrls: `http://127.0.0.1:${peer}`,
      initialAdvertisePeerUrls: `http://127.0.0.1:${peer}`,
      initialCluster: `alive=http://127.0.0.1:${peer}`,
    }),
  ]);
});

afterAll(async () => {
  await Promise.all([cluster.close(), core.close()]);
  rmSync(folder, { recursive: true, force: true });
});

const directories = () => `file://${["a", "b", "c"].map((name) => join(folder, name)).join(",")}`;

describe("a process lives as long as a call waits or a lease is held, not because leases are open", () => {
  test.each<[string, () => readonly string[], string, object?]>([
    ["memory", () => ["memory:alive"], "1s"],
    ["Δ-leases in memory", () => ["delta+memory:alive"], "2s"],
    ["Flease on stores in memory", () => ["flease+memory:alive"], "2s"],
    ["Δ-leases on directories", () => [`delta+${directories()}`], "6s"],
    ["members", () => cluster.urls, "1s"],
    ["members, in a worker thread", () => cluster.urls, "1s", { renewInWorker: "10s" }],
    ["a core", () => core.clientUrls.map((url) => url.replace("http", "core")), "2s"],
  ])("on %s", async (ground, urls, ttl, options) => {
    // The core's streams stay open from the first lease until `close()`.
    const closes = ground === "a core";
    expect(await runProgram({ urls: urls(), ttl, options, closes })).toEqual(alive);
  });
});
