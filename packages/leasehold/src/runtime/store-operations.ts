/** The event of one operation on one of this process's stores. */
export type StoreEvent =
  | { readonly kind: "begun"; readonly store: string }
  | {
      readonly kind: "ended" | "probed";
      readonly store: string;
      /** `read`, `replace`, `put`, `list`; empty for a probe. */
      readonly operation: string;
      /** `ok`, `conflict`, or an error's code. */
      readonly outcome: string;
      readonly tookMs: number;
    };

type Listener = (event: StoreEvent) => void;

const listeners = new Set<Listener>();

/** Nothing is measured without a listener. */
export function isAnyoneListening(): boolean {
  return listeners.size > 0;
}

export function publish(event: StoreEvent): void {
  for (const listener of listeners) listener(event);
}

/** Calls `listener` with each event from now on. Returns a function that stops this. */
export function onStoreEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
