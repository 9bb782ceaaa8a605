import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { base64 } from "./action.js";

/** Asks the server that they wait at. */
type Ask = (request: JsonObject) => Promise<JsonValue>;

/** Who is the next one has its answer long before. */
const answerMsMax = 5_000;

interface Waiter {
  readonly prefix: string;
  readonly key: string;
  readonly cancel: () => void;
  answer: JsonValue | undefined;
  /** It stands in the queue, or has done so. */
  isInQueue: boolean;
  /** No answer has come although it was due. */
  isOverdue: boolean;
}

function queuePrefixOf({ name }: JsonObject): string {
  return `${Buffer.from(String(name ?? ""), "base64").toString()}/`;
}

/** Where it stands in the queue, as text. */
export function queueKeyOf(request: JsonObject): string {
  return queuePrefixOf(request) + BigInt(String(request["lease"] ?? 0)).toString(16);
}

/** Those who wait at a server: for a lock, or to lead. */
export class Waiting {
  readonly #range: Ask;
  readonly #waiters = new Map<string, Waiter>();

  constructor(range: Ask) {
    this.#range = range;
  }

  add(waiter: string, request: JsonObject, answer: Promise<JsonValue>, cancel: () => void): void {
    const prefix = queuePrefixOf(request);
    const key = base64(queueKeyOf(request));
    const added: Waiter = {
      prefix,
      key,
      cancel,
      answer: undefined,
      isInQueue: false,
      isOverdue: false,
    };
    this.#waiters.set(waiter, added);
    void answer.then((found) => (added.answer = found));
  }

  /** Resolves when nobody's turn has come who has not been told. */
  async settle(patience: number): Promise<void> {
    for (const waiter of this.#waiters.values()) {
      const endMs = performance.now() + answerMsMax * patience;
      while (!(await this.#isSettled(waiter)))
        if (performance.now() > endMs) waiter.isOverdue = true;
        else await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** It stands before all others. */
  async isFirst(request: JsonObject): Promise<boolean> {
    const [first] = await this.#queueOf(queuePrefixOf(request));
    return first === base64(queueKeyOf(request));
  }

  async #isSettled(waiter: Waiter): Promise<boolean> {
    if (waiter.answer !== undefined || waiter.isOverdue) return true;
    const { key, prefix } = waiter;
    const queue = await this.#queueOf(prefix);
    waiter.isInQueue ||= queue.includes(key);
    return waiter.isInQueue && queue.length > 0 && queue[0] !== key;
  }

  async #queueOf(prefix: string): Promise<JsonValue[]> {
    const found = await this.#range({
      key: base64(prefix),
      rangeEnd: base64(`${prefix.slice(0, -1)}0`),
      sortTarget: "CREATE",
      sortOrder: "ASCEND",
      keysOnly: true,
    });
    return ((found as { kvs?: JsonObject[] }).kvs ?? []).map((kv) => kv["key"] ?? "");
  }

  answerOf(waiter: string): JsonValue {
    return this.#waiters.get(waiter)?.answer ?? "waits";
  }

  get answers(): JsonObject {
    return Object.fromEntries([...this.#waiters].map(([name, { answer }]) => [name, answer ?? "waits"]));
  }

  end(): void {
    for (const { cancel } of this.#waiters.values()) cancel();
    this.#waiters.clear();
  }
}
