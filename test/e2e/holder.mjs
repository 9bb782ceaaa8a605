/**
 * A process that takes one lease after another, forever, and writes every look at it to a journal.
 * `src/history` judges the journal (docs/internals/histories.md has the format). Each line is one synchronous
 * write, so that SIGKILL loses none.
 *
 * Its orders are the JSON in the first argument, see `HolderOrders` in `arena.ts`.
 */
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const built = process.env.LEASEHOLD_DIST;
const { open } = await import(built === undefined ? "leasehold" : `${built}/index.js`);
const { historyLine } = await import(built === undefined ? "leasehold/testing" : `${built}/testing/index.js`);

const orders = JSON.parse(process.argv[2]);
const journal = openSync(orders.journal, "wx");
const stop = new AbortController();

/** Looks follow each other as closely as timers allow, and at least one in each such interval is written. */
const lookEveryMs = 2;
const writeEveryNs = 10_000_000n;
/** How long an ended lease is still looked at: it must not become held again. */
const lookAfterEndMs = 100;
/** How long a liar reports a lost lease as held. */
const lieMs = 2_000;
const retryMs = 100;

const nowNs = () => process.hrtime.bigint();
const between = ([min, max]) => min + Math.random() * (max - min);

function write(entry) {
  writeSync(journal, historyLine({ ...entry, pid: process.pid }));
}

function tell(news) {
  if (process.connected) process.send(news);
}

/** Looks at one lease and writes samples: every change, and no more than needed otherwise. */
class Observer {
  #lease;
  #about;
  #ok;
  #writtenAt = 0n;
  #skipped;
  #hasHeld = false;

  constructor(lease) {
    this.#lease = lease;
    const { holder: incarnation, resource, token } = lease;
    this.#about = { incarnation, resource, token };
  }

  look() {
    const m1 = nowNs();
    const remainingMs = this.#lease.remaining();
    const m2 = nowNs();
    const held = remainingMs > 0;
    this.#hasHeld ||= held;
    const ok = held || (this.#hasHeld && orders.liesAfterLoss);
    const sample = { event: "sample", m1, m2, ok, remainingMs, ...this.#about };
    if (ok === this.#ok && m1 - this.#writtenAt < writeEveryNs) {
      this.#skipped = sample;
      return held;
    }
    if (ok !== this.#ok) this.flush();
    this.#ok = ok;
    this.#write(sample);
    return held;
  }

  /** Writes the last look if it was left out. */
  flush() {
    if (this.#skipped !== undefined) this.#write(this.#skipped);
  }

  #write(sample) {
    this.#writtenAt = sample.m1;
    this.#skipped = undefined;
    write(sample);
  }

  aboutToRelease() {
    this.look();
    this.flush();
    write({ event: "release", m: nowNs(), ...this.#about });
  }

  hasLost() {
    this.flush();
    write({ event: "lost", m: nowNs(), ...this.#about });
  }

  async watch(ms) {
    const end = performance.now() + ms;
    for (this.look(); performance.now() < end; this.look()) await sleep(lookEveryMs);
    this.flush();
  }
}

/** Resolvers of the writes in flight, by number. */
const answers = new Map();
let writes = 0;
process.on("message", ({ id, result }) => {
  answers.get(id)?.(result);
  answers.delete(id);
});

/** Writes to the guarded resource, one write after the other, while each look finds the lease held. */
async function useGuarded(lease, observer, isWanted) {
  const { holder: incarnation, resource, token } = lease;
  while (isWanted() && lease.remaining() > 0 && process.connected) {
    const id = (writes += 1);
    const answered = new Promise((resolve) => answers.set(id, resolve));
    const m1 = nowNs();
    tell({ type: "write", id, resource, token: String(token) });
    const result = await answered;
    observer.flush(); // Lines must be in the order of their time stamps.
    write({ event: "op", m1, m2: nowNs(), result, incarnation, resource, token });
    await sleep(lookEveryMs);
  }
}

async function holdOne(leases, resource) {
  const lease = await leases.acquire(resource, { wait: orders.waitMs, signal: stop.signal });
  const observer = new Observer(lease);
  let held = observer.look();
  tell({ type: "acquired", resource, token: String(lease.token) });
  let isWanted = orders.writes === true;
  const using = useGuarded(lease, observer, () => isWanted);
  const end = performance.now() + between(orders.holdMs);
  let renewAt = performance.now() + between([0, lease.ttlMs]);
  while (held && performance.now() < end && !stop.signal.aborted) {
    await sleep(lookEveryMs);
    held = observer.look();
    if (performance.now() < renewAt) continue;
    renewAt += between([0, lease.ttlMs]);
    lease.renew().catch(() => undefined); // The next look will show a loss.
  }
  isWanted = false;
  if (held) {
    await using;
    observer.aboutToRelease();
    tell({ type: "released", resource });
    await lease.release();
  } else {
    observer.hasLost();
    tell({ type: "lost", resource });
  }
  await observer.watch(orders.liesAfterLoss ? lieMs : lookAfterEndMs);
  await lease.release();
  await using;
}

async function work(leases) {
  while (!stop.signal.aborted) {
    const resource = orders.resources[Math.floor(Math.random() * orders.resources.length)];
    try {
      await holdOne(leases, resource);
      await sleep(between(orders.pauseMs), undefined, { signal: stop.signal });
    } catch (error) {
      if (stop.signal.aborted) return;
      write({ event: "trouble", m: nowNs(), code: String(error.code), message: error.message });
      tell({ type: "trouble", code: String(error.code), message: error.message });
      await sleep(retryMs);
    }
  }
}

process.on("SIGTERM", () => stop.abort());
process.on("disconnect", () => process.exit(0));

writeSync(journal, historyLine({ event: "history", version: 1, ...orders.run, by: orders.name }));
write({ event: "boot", m: nowNs() });
const leases = await open(...orders.endpoints, { name: orders.name, timeout: "20s" });
write({ event: "ready", m: nowNs() });
tell({ type: "started", guarantees: { takeoverMsMax: leases.guarantees.takeoverMsMax } });
await work(leases);
await leases.close();
process.exit(0);
