/** What the processes of the local cluster tell the one that started them. */
export type WorkerNews =
  /** The name under which the cluster will show its leases. */
  | { readonly type: "started"; readonly holder: string }
  | { readonly type: "waiting"; readonly resource: string }
  | {
      readonly type: "acquired";
      readonly resource: string;
      readonly token: string;
      readonly waitedMs: number;
    }
  | { readonly type: "released"; readonly resource: string; readonly token: string; readonly heldMs: number }
  | { readonly type: "lost"; readonly resource: string; readonly token: string; readonly reason: string }
  | { readonly type: "trouble"; readonly message: string };

/** What a worker is told when it starts, as its one argument. */
export interface WorkerOrders {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly resources: readonly string[];
}
