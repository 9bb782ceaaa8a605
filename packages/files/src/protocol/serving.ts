import type { OperationAny, ResultAny } from "./messages.js";
import type { Tenure } from "./tenure.js";

export interface Outcome<R = ResultAny> {
  readonly result: R;
  readonly bytes: Uint8Array;
}

/** A primary of anything that has its own lease. */
export interface Serving {
  readonly tenure: Tenure;
  readonly isIdle: boolean;
  /** Must resolve before anything is served. */
  begin(): Promise<void>;
  /** @throws TenureOver if the operation was not begun. */
  run(operation: OperationAny, bytes: Uint8Array, timeoutMs: number): Promise<Outcome>;
}
