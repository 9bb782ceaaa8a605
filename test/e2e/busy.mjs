// A program whose event loop is blocked, with or without a worker thread that renews its leases. Orders
// arrive as messages from the parent; results go back the same way.
import { syncBuiltinESMExports } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import threads from "node:worker_threads";

/** The thread that the library starts, kept so that it can be ended from outside. */
let worker;
threads.Worker = class extends threads.Worker {
  constructor(...args) {
    super(...args);
    worker = this;
  }
};
syncBuiltinESMExports();

const { open, urls, options, ttlMs } = JSON.parse(process.argv[2]);
const library = await import(open);
const leases = await library.open(...urls, options);
const lease = await leases.acquire("busy", { ttl: ttlMs });
let abortedBy;
lease.signal.addEventListener("abort", () => (abortedBy = lease.signal.reason));

function look() {
  try {
    lease.assertHeld();
    return { held: true, remainingMs: lease.remaining() };
  } catch (error) {
    return { held: false, code: error.code, reason: error.reason, remainingMs: lease.remaining() };
  }
}

const acts = {
  /** Blocks the event loop, then looks at the lease first thing, and again when timers have run. */
  async block(forMs) {
    const from = performance.now();
    while (performance.now() - from < forMs);
    const first = look();
    await sleep(50);
    return { first, later: look(), aborted: abortedBy?.code, token: lease.token.toString() };
  },
  /** Ends the worker thread and looks at the lease, in short intervals, while nothing renews it. */
  async loseWorker(forMs) {
    const watched = (async () => {
      for await (const _change of leases.watch(""));
    })().catch((error) => error.code);
    void worker.terminate();
    const from = performance.now();
    let lastHeldAt = Date.now();
    while (performance.now() - from < forMs) {
      if (look().held) lastHeldAt = Date.now();
      await sleep(5);
    }
    const second = await leases.acquire("other", { wait: 500 }).then(
      () => "acquired",
      (error) => error.code,
    );
    return { lastHeldAt, last: look(), aborted: abortedBy?.code, second, watched: await watched };
  },
  async close() {
    const from = performance.now();
    await leases.close();
    return { tookMs: performance.now() - from, resources: process.getActiveResourcesInfo() };
  },
};

process.on("message", async ({ act, forMs }) => {
  process.send(await acts[act](forMs));
  if (act === "close") process.disconnect();
});
process.send({ token: lease.token.toString(), holder: lease.holder });
