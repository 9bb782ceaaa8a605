import type { ServiceError } from "@grpc/grpc-js";
import {
  checkLinearizable,
  type HistoryOperation,
  type RegisterInput,
  registerModel,
  type RegisterOutput,
  type SequentialModel,
} from "../../../packages/leasehold/src/testing/index.js";
import type { CoreProcess } from "./core-cluster.js";

/** A caller that has received nothing for this long asks another server. */
export const callMs = 700;

type Operation = HistoryOperation<{ key: string; what: RegisterInput<string> }, RegisterOutput<string>>;

/** Callers that use one server at a time, and move on to the next when it does not answer. */
export class Load {
  readonly history: Operation[] = [];
  /** When a write was acknowledged. */
  readonly acknowledgedMs: number[] = [];
  failures = 0;
  #isOver = false;
  readonly #callers: Promise<void>[];

  constructor(servers: readonly CoreProcess[], callers: number, keys: number) {
    this.#callers = Array.from({ length: callers }, (_, caller) =>
      this.#call(servers, caller, `key-${caller % keys}`),
    );
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }

  async #call(servers: readonly CoreProcess[], caller: number, key: string): Promise<void> {
    for (let number = 0; !this.#isOver; number++) {
      const { client } = servers[(caller + this.failures) % servers.length]!;
      const value = `${caller}-${number}`;
      const isWrite = number % 2 === 0;
      const calledAt = performance.now();
      try {
        const output = isWrite
          ? await client.put(key, value, callMs)
          : { value: await client.get(key, callMs) };
        const returnedAt = performance.now();
        if (isWrite) this.acknowledgedMs.push(returnedAt);
        const what = isWrite ? { write: value } : "read";
        const answered = isWrite ? { value: undefined } : (output as RegisterOutput<string>);
        this.history.push({ input: { key, what }, calledAt, returnedAt, output: answered });
      } catch (error) {
        this.failures += 1;
        const wasSent = !(error as ServiceError).details.startsWith("No connection established");
        if (isWrite && wasSent) this.history.push({ input: { key, what: { write: value } }, calledAt });
        await sleep(50);
      }
    }
  }

  /** The longest time without an acknowledged write. */
  gapMs(): number {
    const times = this.acknowledgedMs.toSorted((a, b) => a - b);
    return Math.max(...times.slice(1).map((time, index) => time - times[index]!));
  }

  judge(): string {
    const register = registerModel<string>();
    const model: SequentialModel<string | undefined, Operation["input"], RegisterOutput<string>> = {
      initial: register.initial,
      step: (state, { what }, output) => register.step(state, what, output),
      keyOf: String,
      partitionOf: ({ key }) => key,
    };
    const result = checkLinearizable(model, this.history);
    return result.verdict === "linearizable"
      ? result.verdict
      : `${result.verdict}: ${JSON.stringify(result.stuckAt)}`;
  }
}

export const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
