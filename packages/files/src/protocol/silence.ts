import { Pauses } from "leasehold/common";
import { namesKey } from "./keys.js";
import type { NodeParts } from "./settings.js";

/** When a call has waited this long, the node checks whether the other one answers at all, ms. */
const patienceMs = 250;
/** How long a healthy node may take to answer a request that needs no work, ms. */
const silentMs = 500;

interface Call {
  readonly sinceMs: number;
  readonly silent: () => void;
}

/**
 * Calls in progress at other nodes. A node that is killed closes its connections; one that is cut off or
 * stopped does not, and its calls would wait for their whole time limit.
 */
export class Silence {
  readonly #parts: Pick<NodeParts, "world" | "peers">;
  readonly #pauses: Pauses;
  /** By node, oldest first. */
  readonly #calls = new Map<string, Set<Call>>();

  constructor(parts: Pick<NodeParts, "world" | "peers">) {
    this.#parts = parts;
    this.#pauses = new Pauses(parts.world.timers);
  }

  /**
   * Watches a call.
   * @param silent called, perhaps repeatedly, while that node answers nothing
   * @returns a function that ends the watch
   */
  watch(node: string, silent: () => void): () => void {
    const call = { sinceMs: this.#parts.world.clock.monotonicMs(), silent };
    const calls = this.#calls.get(node);
    if (calls !== undefined) {
      calls.add(call);
      return () => calls.delete(call);
    }
    const first = new Set([call]);
    this.#calls.set(node, first);
    void this.#look(node, first);
    return () => first.delete(call);
  }

  /** Ends the pauses; the calls end on their own. */
  close(): void {
    this.#pauses.end();
  }

  async #look(node: string, calls: Set<Call>): Promise<void> {
    while (calls.size > 0) {
      await this.#pauses.pause(patienceMs);
      const late = this.#late(calls);
      if (late.length > 0 && !(await this.#answers(node)))
        for (const call of late) if (calls.has(call)) call.silent();
    }
    this.#calls.delete(node);
  }

  #late(calls: ReadonlySet<Call>): Call[] {
    const late: Call[] = [];
    const beforeMs = this.#parts.world.clock.monotonicMs() - patienceMs;
    for (const call of calls) {
      if (call.sinceMs > beforeMs) break;
      late.push(call);
    }
    return late;
  }

  async #answers(node: string): Promise<boolean> {
    try {
      await this.#parts.peers.ask(node, "primary", { path: namesKey }, { timeoutMs: silentMs });
      return true;
    } catch {
      return false;
    }
  }
}
