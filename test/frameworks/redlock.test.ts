import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open } from "leasehold";
import * as dropIn from "@leasehold/redlock";
import { RedisServer } from "../stores/servers/redis.js";
import { type LocalCluster, startLocalCluster } from "../support/local-cluster.js";
import { runRedlockConformance, type Subject } from "./redlock-conformance.js";
import { installed, moduleIn } from "./support/install.js";

/** npm's redlock on a real Redis and the drop-in on three grounds pass the same tests. */

const folder = installed("redlock", {
  private: true,
  dependencies: { redlock: "5.0.0-beta.2", ioredis: "5.8.2" },
});
const redlock = (await import(moduleIn(folder, "redlock/dist/esm/index.js"))) as typeof dropIn;
const { default: Redis } = (await import(moduleIn(folder, "ioredis/built/index.js"))) as {
  default: new (port: number) => dropIn.Client & { disconnect(): void };
};

let redis: RedisServer;
let cluster: LocalCluster;
let directory: string;

beforeAll(async () => {
  redis = await RedisServer.start();
  cluster = await startLocalCluster();
  directory = mkdtempSync(join(tmpdir(), "leasehold-redlock-"));
});
afterAll(async () => {
  await redis.close();
  await cluster.close();
  rmSync(directory, { recursive: true, force: true });
});

const real = (): Subject => ({
  create: async (settings) => new redlock.default([new Redis(redis.port)], settings),
  ExecutionError: redlock.ExecutionError,
  ResourceLockedError: redlock.ResourceLockedError,
  steal: (resource) => redis.command(`DEL ${resource}`),
  earlierMsMax: () => 0,
});

/** @param earlierMsMax the part of a lease that the ground reserves for the difference between clocks */
const ours = (addresses: () => string[], earlierMsMax: Subject["earlierMsMax"]) => (): Subject => ({
  create: async (settings) => new dropIn.Redlock(addresses(), settings),
  ExecutionError: dropIn.ExecutionError,
  ResourceLockedError: dropIn.ResourceLockedError,
  steal: async (resource) => {
    await using leases = await open(...addresses());
    await leases.break(resource);
  },
  earlierMsMax,
});

const grounds: [string, () => Subject][] = [
  ["npm's redlock on a Redis", real],
  [
    "the drop-in in memory",
    ours(
      () => ["memory:redlock"],
      (durationMs) => durationMs / 100,
    ),
  ],
  [
    "the drop-in on a directory",
    ours(
      () => [`delta+file://${directory}`],
      () => 5_000,
    ),
  ],
  [
    "the drop-in on members",
    ours(
      () => cluster.urls,
      () => 5_000,
    ),
  ],
];
describe.concurrent.each(grounds)("%s", (_, subject) => {
  runRedlockConformance(subject);
});

/** Blocks this process for longer than the lock lasts, and reads the signal in the next statement. */
async function abortedAfterPause(
  program: Pick<dropIn.Redlock, "using" | "quit">,
): Promise<boolean | undefined> {
  let aborted: boolean | undefined;
  const settings = { retryCount: 0, automaticExtensionThreshold: 100 };
  await program
    .using([`paused/${performance.now()}`], 1_000, settings, async (signal) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
      ({ aborted } = signal);
    })
    .catch(() => undefined);
  await program.quit();
  return aborted;
}

test("after a pause beyond the duration, redlock's signal claims that the lock is held", async () => {
  expect(await abortedAfterPause(await real().create())).toBe(false);
});

test("after a pause beyond the duration, the drop-in's signal reports the loss", async () => {
  expect(await abortedAfterPause(new dropIn.Redlock("memory:paused"))).toBe(true);
});

test("addresses that cannot be opened yet are retried", async () => {
  const server = await RedisServer.start({ durable: true });
  await server.kill();
  const program = new dropIn.Redlock(`delta+redis://127.0.0.1:${server.port}`);
  const late = program.acquire(["late"], 5_000, { retryCount: -1 });
  await sleep(500);
  await server.restart();
  const lock = await late;
  expect(lock.attempts.length).toBeGreaterThan(1);
  await program.quit();
  await server.close();
});

describe("types", () => {
  const program = `
import Redlock, { ExecutionError, Lock, ResourceLockedError } from "NAME";
import type { ExecutionResult, ExecutionStats, RedlockAbortSignal, Settings } from "NAME";

export async function main(clients: Iterable<CLIENT>): Promise<number> {
  const settings: Partial<Settings> = { driftFactor: 0.01, retryCount: -1, retryDelay: 200, retryJitter: 200 };
  const redlock = new Redlock(clients, { ...settings, automaticExtensionThreshold: 500 });
  redlock.on("error", (error: unknown) => {
    if (error instanceof ResourceLockedError) return;
    if (error instanceof ExecutionError) console.log(error.attempts.length, error.message);
  });
  let lock: Lock = await redlock.acquire(["a"], 5_000, { retryCount: 3 });
  lock = await lock.extend(5_000);
  lock = await redlock.extend(lock, 5_000, settings);
  const text: string = lock.value + lock.resources.join();
  const result: ExecutionResult = await redlock.release(lock, settings);
  const stats: ExecutionStats = await result.attempts[0]!;
  const routine = async (signal: RedlockAbortSignal): Promise<number> => {
    if (signal.aborted) throw signal.error;
    return lock.expiration - Date.now() + stats.votesFor.size + stats.votesAgainst.size;
  };
  const sum = await redlock.using(["a", "b"], 5_000, routine);
  const more: number = await redlock.using(["a", "b"], 5_000, settings, routine);
  await lock.release();
  await redlock.quit();
  return sum + more + text.length + redlock.clients.size + lock.redlock.settings.retryCount;
}
`;
  test.each([
    ["redlock", "import('ioredis').Redis"],
    ["@leasehold/redlock", "import('leasehold').Leases"],
  ])("a program compiles with %s", (name, client) => {
    const root = fileURLToPath(new URL("../..", import.meta.url));
    const file = join(folder, "program.ts");
    writeFileSync(file, program.replaceAll("NAME", name).replaceAll("CLIENT", client));
    const paths = {
      // redlock 5.0.0-beta.2 does not list its declarations in its exports.
      redlock: [join(folder, "node_modules/redlock/dist/index.d.ts")],
      ioredis: [join(folder, "node_modules/ioredis/built/index.d.ts")],
      leasehold: [join(root, "packages/leasehold/dist/index.d.ts")],
      "@leasehold/redlock": [join(root, "packages/redlock/dist/index.d.ts")],
    };
    const compilerOptions = {
      strict: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
      noEmit: true,
      target: "es2023",
      lib: ["es2023", "esnext.disposable"],
      module: "nodenext",
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
      paths,
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const { stdout } = spawnSync(process.execPath, [compiler, "-p", folder, "--pretty", "false"], {
      encoding: "utf8",
    });
    expect(stdout).toBe("");
  });
});
