import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { open } from "leasehold";
import type { Lease, Leases, OpenOptions } from "leasehold";
import { dist } from "../support/built.js";
import { startLocalCluster } from "../support/local-cluster.js";
import type { LocalCluster } from "../support/local-cluster.js";

/** Programs whose event loop is blocked, and the effect on their leases. */

const ttlMs = 1_000;
const busyPath = fileURLToPath(new URL("busy.mjs", import.meta.url));

interface Look {
  readonly held: boolean;
  readonly code?: string;
  readonly reason?: string;
  readonly remainingMs: number;
}

class Busy {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;

  constructor(urls: readonly string[], options: OpenOptions) {
    const orders = { open: pathToFileURL(join(dist, "index.js")).href, urls, options, ttlMs };
    this.child = fork(busyPath, [JSON.stringify(orders)]);
    this.exited = once(this.child, "exit");
  }

  async heard<T>(): Promise<T> {
    const [news] = await once(this.child, "message", { signal: AbortSignal.timeout(30_000) });
    return news as T;
  }

  ask<T>(act: string, forMs = 0): Promise<T> {
    const news = this.heard<T>();
    this.child.send({ act, forMs });
    return news;
  }
}

let cluster: LocalCluster;
let rival: Leases;
let busy: Busy | undefined;

beforeEach(async () => {
  cluster = await startLocalCluster();
  rival = await open(...cluster.urls, { name: "rival" });
});

afterEach(async () => {
  busy?.child.kill("SIGKILL");
  await rival.close();
  await cluster.close();
});

async function start(options: OpenOptions): Promise<{ token: string; holder: string }> {
  busy = new Busy(cluster.urls, { name: "busy", ...options });
  return busy.heard();
}

/**
 * Lets the rival wait for the lease while `something` runs. Resolves with the result and the lease that the
 * rival got.
 */
async function meanwhile<T>(something: Promise<T>): Promise<{ result: T; taken: Lease | undefined }> {
  const stop = new AbortController();
  let taken: Lease | undefined;
  const waiting = rival.acquire("busy", { signal: stop.signal }).then(
    (lease) => (taken = lease),
    () => undefined,
  );
  const result = await something;
  const takenBefore = taken;
  stop.abort();
  await waiting;
  return { result, taken: takenBefore };
}

describe("an event loop that is blocked for three times the ttl", () => {
  test("loses the lease and reports it on the first look; the successor has it", async () => {
    const { token } = await start({});
    const { result, taken } = await meanwhile(
      busy!.ask<{ first: Look; later: Look; aborted?: string }>("block", 3 * ttlMs),
    );
    expect(result.first).toEqual({ held: false, code: "LEASE_LOST", reason: "expired", remainingMs: 0 });
    expect(result.aborted).toBe("LEASE_LOST");
    expect(taken!.token).toBeGreaterThan(BigInt(token));
  });

  test("keeps the lease when a worker thread renews it, and nobody else gets it", async () => {
    const { token } = await start({ renewInWorker: true });
    const { result, taken } = await meanwhile(
      busy!.ask<{ first: Look; later: Look; aborted?: string; token: string }>("block", 3 * ttlMs),
    );
    expect(result.first.held).toBe(true);
    expect(result.first.remainingMs).toBeGreaterThan(ttlMs / 4);
    expect(result.later.held).toBe(true);
    expect(result.aborted).toBeUndefined();
    expect(result.token).toBe(token);
    expect(taken).toBeUndefined();
    const closed = await busy!.ask<{ tookMs: number }>("close");
    expect(closed.tookMs).toBeLessThan(1_000);
    await busy!.exited;
    expect((await rival.acquire("busy", { wait: 300 })).token).toBeGreaterThan(BigInt(token));
  });

  test("loses the lease despite a worker thread when it is blocked for longer than `renewInWorker` allows", async () => {
    await start({ renewInWorker: "1s" });
    const { result, taken } = await meanwhile(busy!.ask<{ first: Look }>("block", 5 * ttlMs));
    expect(result.first).toMatchObject({ held: false, code: "LEASE_LOST" });
    expect(taken).toBeDefined();
  });
});

test("a worker thread that dies: the lease is lost before another client has it, and no new lease can be acquired", async () => {
  await start({ renewInWorker: true });
  const losing = busy!.ask<{
    lastHeldAt: number;
    last: Look;
    aborted?: string;
    second: string;
    watched: string;
  }>("loseWorker", 2 * ttlMs);
  const successor = await rival.acquire("busy", { wait: 3 * ttlMs });
  const takenAt = Date.now();
  const lost = await losing;
  expect(lost.lastHeldAt).toBeLessThan(takenAt);
  expect(lost.last).toMatchObject({ held: false, code: "LEASE_LOST" });
  expect(lost.aborted).toBe("LEASE_LOST");
  expect([lost.second, lost.watched]).toEqual(["CLOSED", "CLOSED"]);
  expect(successor.remaining()).toBeGreaterThan(0);
  await busy!.ask("close");
  await busy!.exited;
});

/** A thread that opens a client and, on a message, acquires a lease. */
const threadSource = `
  const { parentPort, workerData } = require("node:worker_threads");
  (async () => {
    const { open } = await import(workerData.library);
    const leases = await open(...workerData.urls, { name: "thread" });
    parentPort.postMessage({ self: leases.self });
    parentPort.on("message", async (what) => {
      if (what === "close") {
        await leases.close();
        parentPort.close();
      } else {
        const lease = await leases.tryAcquire("shared");
        parentPort.postMessage({ token: lease?.token });
      }
    });
  })();
`;

test("two worker threads of one process are two owners, which exclude each other and this thread", async () => {
  const workerData = { library: pathToFileURL(join(dist, "index.js")).href, urls: cluster.urls };
  const threads = [0, 1].map(() => new Worker(threadSource, { eval: true, workerData }));
  const ask = async (thread: Worker): Promise<{ self?: string; token?: bigint }> => {
    const [answer] = await once(thread, "message", { signal: AbortSignal.timeout(10_000) });
    return answer;
  };
  const names = await Promise.all(threads.map(async (thread) => (await ask(thread)).self));
  expect(new Set(names).size).toBe(2);
  const answers: (bigint | undefined)[] = [];
  for (const thread of threads) {
    const answer = ask(thread);
    thread.postMessage("try");
    answers.push((await answer).token);
  }
  expect(answers).toEqual([expect.any(BigInt), undefined]);
  expect(await rival.tryAcquire("shared")).toBeUndefined();
  const ended = Promise.all(threads.map((thread) => once(thread, "exit")));
  for (const thread of threads) thread.postMessage("close");
  await ended;
});
