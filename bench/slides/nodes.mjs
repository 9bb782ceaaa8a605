// Nodes in processes of their own, and the work that they did between two readings.
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../processes.mjs";
import { ask, startChild, stopAll } from "./child.mjs";

/** A starting member is silent for a little more than this. */
const ttlMaxMs = 4_000;
const settings = { ttlMax: ttlMaxMs, maxClockSkew: "20ms", rpcTimeout: "900ms", insecure: true };
const cellSize = 3;
const drainMs = 150;

const idOf = (index) => `n${String(index).padStart(2, "0")}`;

const start = (words) => startChild("node.mjs", words);

export class Nodes {
  #children = [];

  /** Starts `count` members, three of which coordinate each resource. */
  static async members(count) {
    const ids = Array.from({ length: count }, (_, index) => idOf(index));
    const members = {};
    for (const id of ids) members[id] = `127.0.0.1:${await freePort()}`;
    const nodes = new Nodes();
    nodes.#children = await Promise.all(
      ids.map((id) => start({ id, member: { ...settings, members, ...(count > cellSize && { cellSize }) } })),
    );
    return nodes;
  }

  /** Starts clients until there are `count`; `words` has their servers. */
  async growTo(count, words) {
    const more = Array.from({ length: count - this.#children.length }, (_, index) =>
      start({ id: idOf(this.#children.length + index), ...words }),
    );
    this.#children.push(...(await Promise.all(more)));
  }

  get count() {
    return this.#children.length;
  }

  #ask(words) {
    return Promise.all(this.#children.map((child) => ask(child, words)));
  }

  /** Runs `inFlight` operations at a time on each node, and if given, `perSecond` in all. */
  async run(inFlight, perSecond) {
    await this.#ask({
      order: "run",
      inFlight,
      ...(perSecond !== undefined && { perSecond: perSecond / this.count }),
    });
  }

  async pause() {
    await this.#ask({ order: "pause" });
  }

  /** What each has done and used since its start, read once no operation is in flight. */
  async drained() {
    for (let before = -1; ;) {
      const each = await this.#ask({ order: "usage" });
      const done = sum(each, "done") + sum(each, "failed");
      if (done === before) return each;
      before = done;
      await sleep(drainMs);
    }
  }

  /** The leases a second that they acquire and release in this time. */
  async watch(forMs) {
    const before = await this.#ask({ order: "usage" });
    const began = performance.now();
    await sleep(forMs);
    const after = await this.#ask({ order: "usage" });
    const seconds = (performance.now() - began) / 1_000;
    return (sum(after, "done") - sum(before, "done")) / seconds;
  }

  stop() {
    return stopAll(this.#children);
  }
}

export const sum = (each, field) => each.reduce((total, one) => total + one[field], 0);
