/** Messages of the local cluster's processes to their parent. */
export type WorkerNews =
  /** The name of the worker in the cluster. */
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

/** The instructions for a worker, its only argument. */
export interface WorkerOrders {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly resources: readonly string[];
  readonly metricsAddress?: string;
}
