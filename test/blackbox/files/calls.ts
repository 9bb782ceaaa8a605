/** A client's request to a node: one JSON line each way. Content is text, one character per byte. */
export type FileCall =
  | { readonly kind: "create"; readonly path: string }
  | { readonly kind: "read"; readonly path: string; readonly offset: number; readonly length: number }
  | { readonly kind: "stat"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly offset: number; readonly text: string }
  | { readonly kind: "append"; readonly path: string; readonly text: string }
  | { readonly kind: "truncate"; readonly path: string; readonly size: number }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "sync"; readonly path: string }
  /** `text` is the content of the file, which its only writer knows. */
  | { readonly kind: "rename"; readonly path: string; readonly to: string; readonly text: string };

export interface CallRequest {
  readonly id: number;
  readonly call: FileCall;
}

/** `nodes`: the number of nodes that have the whole file after a sync. */
export interface CallResult {
  readonly text?: string;
  readonly size?: number;
  readonly nodes?: number;
}

export type CallOutcome =
  | { readonly result: CallResult }
  | {
      readonly error: string;
      /** The primary itself doesn't know whether the call was done; the reset that follows settles it. */
      readonly isSettledNext: boolean;
    };

export type CallAnswer = { readonly id: number } & CallOutcome;

/** One call in a client's journal. `returnedAt` and `outcome` are missing if no answer came. */
export interface CallEntry {
  readonly node: string;
  readonly call: FileCall;
  /** On the client's steady clock, ms. */
  readonly calledAt: number;
  readonly returnedAt?: number;
  readonly outcome?: CallOutcome;
}
