import {
  checkLinearizable,
  type HistoryOperation,
  type SequentialModel,
} from "leasehold/inner/testing/linearizability.js";
import type { CoreReport } from "../world/invariants.js";

export type KeyInput =
  | { readonly kind: "read"; readonly key: string }
  | { readonly kind: "put"; readonly key: string; readonly value: string }
  | { readonly kind: "delete"; readonly key: string }
  /** `from` undefined: only if the key does not exist. */
  | {
      readonly kind: "swap";
      readonly key: string;
      readonly from: string | undefined;
      readonly value: string;
    };

export interface KeyOutput {
  /** For a read: the value. For a put: the previous value. */
  readonly value?: string | undefined;
  /** For a deletion or a swap: whether it changed anything. */
  readonly did?: boolean;
}

type Operation = HistoryOperation<KeyInput, KeyOutput>;

type Value = string | undefined;

/** The sequential model of a key. */
const keyModel: SequentialModel<Value, KeyInput, KeyOutput> = {
  initial: undefined,
  step(state, input, output) {
    if (input.kind === "read") return output === undefined || output.value === state ? [state] : [];
    if (input.kind === "put") return output === undefined || output.value === state ? [input.value] : [];
    const does = input.kind === "delete" ? state !== undefined : state === input.from;
    if (output !== undefined && output.did !== does) return [];
    if (!does) return [state];
    return [input.kind === "delete" ? undefined : input.value];
  },
  keyOf: (state) => state ?? "",
  partitionOf: ({ key }) => key,
};

/** Most histories take a few thousand. */
const stepsMax = 300_000;

/**
 * Reads, writes and transactions take effect one after another, each between its call and its return. Nothing
 * acknowledged is lost.
 */
export class Linearizability {
  readonly #report: CoreReport;
  /** The histories of successive cores, with their start. */
  readonly #histories: { readonly fromMs: number; readonly operations: Operation[] }[] = [
    { fromMs: -Infinity, operations: [] },
  ];
  readonly #lastSeen = new Map<string, string | undefined>();

  constructor(report: CoreReport) {
    this.#report = report;
  }

  record(operation: Operation): void {
    this.#histories.findLast(({ fromMs }) => fromMs <= operation.calledAt)!.operations.push(operation);
    const { input, output } = operation;
    if (input.kind === "read") this.#lastSeen.set(input.key, output?.value);
    else if (input.kind === "put" && output !== undefined) this.#lastSeen.set(input.key, input.value);
  }

  /**
   * Another core continues with this state. `restored` decides which earlier operations it contains; here
   * they happen in order, and later operations see their result.
   */
  replaced(found: ReadonlyMap<string, string>, nowMs: number): void {
    const operations = Array.from(found, ([key, value]): Operation => ({
      input: { kind: "put", key, value },
      output: { value: undefined },
      calledAt: nowMs,
      returnedAt: nowMs,
    }));
    this.#histories.push({ fromMs: nowMs, operations });
  }

  /** A likely value to compare with. */
  lastSeen(key: string): string | undefined {
    return this.#lastSeen.get(key);
  }

  /** @returns false if it could not be decided */
  judge(): boolean {
    return this.#histories.map(({ operations }) => this.#judge(operations)).every(Boolean);
  }

  #judge(operations: readonly Operation[]): boolean {
    const { verdict, stuckAt } = checkLinearizable(keyModel, operations, { stepsMax });
    if (verdict !== "violated") return verdict === "linearizable";
    const stuck = stuckAt.map(({ input, output }) => JSON.stringify({ input, output })).join(", ");
    this.#report("linearizability", `none of these can have come next: ${stuck}`);
    return true;
  }
}
