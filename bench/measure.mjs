// The measurements of one system, in its client's process. Each returns plain values; times are in µs.
import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";

/** The most operations whose times are kept. */
const timesMax = 2_000_000;
const timesUs = new Float64Array(timesMax);

const releasedAtOnce = 512;

/** A loop is replaced if its operation takes longer than this while a server is down, ms. */
const lostMs = 2_000;

const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** Calls `operation`, `width` calls at a time, until it returns false or the time is over. */
async function loops(width, forMs, operation) {
  const end = performance.now() + forMs;
  let done = 0;
  const loop = async () => {
    for (;;) {
      const from = performance.now();
      if (from >= end) return;
      const going = operation();
      if (going === undefined) return;
      await going;
      if (done < timesMax) timesUs[done] = (performance.now() - from) * 1_000;
      done += 1;
    }
  };
  const [cpuBefore, started] = [cpuUs(), performance.now()];
  await Promise.all(Array.from({ length: width }, loop));
  const seconds = (performance.now() - started) / 1_000;
  return {
    done,
    seconds,
    clientCpuUs: cpuUs() - cpuBefore,
    timesUs: timesUs.subarray(0, Math.min(done, timesMax)),
  };
}

/** Acquires, renews and releases leases, with a new name for each. */
export class Session {
  #system;
  #connect;
  #lastName = 0;
  #held = [];
  /** Restarts the search for the longest wait in `load` when a server has been killed. */
  #onKilled = () => {};

  constructor(system, connect) {
    this.#system = system;
    this.#connect = connect;
  }

  static async open(connect) {
    return new Session(await connect(), connect);
  }

  get abilities() {
    return Object.keys(this.#system);
  }

  #name() {
    this.#lastName += 1;
    return `bench/${process.pid}/${this.#lastName}`;
  }

  /** Keeps the acquired leases until `release`. */
  async acquire({ width, forMs, max = Infinity }) {
    let asked = 0;
    return loops(width, forMs, () => {
      if (asked >= max) return undefined;
      asked += 1;
      return this.#system.acquire(this.#name()).then((lease) => void this.#held.push(lease));
    });
  }

  /** Renews the held leases one after the other, repeatedly. */
  async renew({ width, forMs }) {
    const held = this.#held;
    let next = 0;
    return loops(Math.min(width, held.length), forMs, () => {
      const index = next++ % held.length;
      return this.#system.renew(held[index]).then((lease) => {
        held[index] = lease;
      });
    });
  }

  async pairs({ width, forMs }) {
    return loops(width, forMs, async () => this.#system.release(await this.#system.acquire(this.#name())));
  }

  /**
   * Releases all held leases, and then waits for one acquisition: by then, a system that does not acknowledge
   * releases has handled them.
   */
  async release() {
    const held = this.#held.splice(0);
    while (held.length > 0) {
      await Promise.all(held.splice(-releasedAtOnce).map((lease) => this.#system.release(lease)));
      await immediate();
    }
    await this.pairs({ width: 1, forMs: 1 });
  }

  /** The client's memory after a collection, including buffers outside the heap. */
  async heap() {
    globalThis.gc();
    await sleep(50);
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    return { bytes: heapUsed + external, held: this.#held.length };
  }

  /** The time from a release until another client, which was waiting, has the lease. */
  async handOver({ count, forMs }) {
    const other = await this.#connect();
    const end = performance.now() + forMs;
    let done = 0;
    while (done < count && performance.now() < end) {
      const name = this.#name();
      const lease = await this.#system.acquire(name);
      const waiting = other.wait(name);
      await sleep(20);
      const from = performance.now();
      const [got] = await Promise.all([
        waiting.then((next) => {
          timesUs[done] = (performance.now() - from) * 1_000;
          return next;
        }),
        this.#system.release(lease),
      ]);
      done += 1;
      await other.release(got);
    }
    await other.close();
    return { done, timesUs: timesUs.subarray(0, done) };
  }

  /**
   * Acquires and releases leases until `afterMs` after `killed`, and until one was acquired after it. Returns
   * the longest time since `killed` without an acquisition. A failed acquisition is retried with another
   * name.
   */
  async load({ width, afterMs, atMostMs }) {
    const started = performance.now();
    let [killedMs, lastMs, longestMs, failed] = [Infinity, started, 0, 0];
    const state = { isOver: false };
    const took = () => {
      const now = performance.now();
      if (now > killedMs) longestMs = Math.max(longestMs, now - Math.max(lastMs, killedMs));
      lastMs = now;
    };
    this.#onKilled = () => {
      killedMs = performance.now();
    };
    const loop = async (one) => {
      while (!state.isOver && !one.isGivenUp) {
        one.since = performance.now();
        try {
          const lease = await this.#system.acquire(this.#name());
          took();
          await this.#system.release(lease);
        } catch {
          failed += 1;
          await sleep(5);
        }
      }
    };
    const begin = () => {
      const one = { since: performance.now(), isGivenUp: false };
      void loop(one);
      return one;
    };
    const all = Array.from({ length: width }, begin);
    while (!state.isOver) {
      await sleep(20);
      const now = performance.now();
      state.isOver = now - started > atMostMs || (now - killedMs > afterMs && lastMs > killedMs);
      for (const [index, one] of all.entries()) {
        if (state.isOver || now - one.since < lostMs) continue;
        // The killed server's answer may never arrive, so another loop replaces this one.
        one.isGivenUp = true;
        failed += 1;
        all[index] = begin();
      }
    }
    if (lastMs < killedMs) throw new Error("nothing could be acquired after a server had been killed");
    return { longestMs, failed };
  }

  killed() {
    this.#onKilled();
  }

  async leader() {
    return { index: await this.#system.leader?.() };
  }
}
