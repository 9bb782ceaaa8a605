/** What a client asks a node, a line of JSON each way. Content is text, a character for a byte. */
export type FileCall =
  | { readonly kind: "create"; readonly path: string }
  | { readonly kind: "read"; readonly path: string; readonly offset: number; readonly length: number }
  | { readonly kind: "stat"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly offset: number; readonly text: string }
  | { readonly kind: "append"; readonly path: string; readonly text: string }
  | { readonly kind: "truncate"; readonly path: string; readonly size: number }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "sync"; readonly path: string }
  /** `text` is what the file contains, as its only writer knows. */
  | { readonly kind: "rename"; readonly path: string; readonly to: string; readonly text: string };

export interface CallRequest {
  readonly id: number;
  readonly call: FileCall;
}

/** `nodes`: how many have all of the file, after a sync. */
export interface CallResult {
  readonly text?: string;
  readonly size?: number;
  readonly nodes?: number;
}

export type CallOutcome =
  | { readonly result: CallResult }
  | {
      readonly error: string;
      /** The primary itself does not know whether it was done: the reset that follows settles it. */
      readonly isSettledNext: boolean;
    };

export type CallAnswer = { readonly id: number } & CallOutcome;

/** One call in a client's journal. Without `returnedAt` and `outcome`: nobody ever answered. */
export interface CallEntry {
  readonly node: string;
  readonly call: FileCall;
  /** By the client's steady clock, ms. */
  readonly calledAt: number;
  readonly returnedAt?: number;
  readonly outcome?: CallOutcome;
}
