import type { Observer, FleaseReport, WaistRequest } from "../stage/observer.js";

/**
 * I1 among the callers of one process. For each resource the process's waist has at most one request in
 * progress, and does not try to acquire what it already has. Providers do not exclude callers of their own
 * process from each other.
 */
export class Turns implements Observer {
  readonly #report: FleaseReport;
  /** By life of a node and resource: the operation in progress, or the grant. */
  readonly #busy = new Map<string, WaistRequest | "grant">();

  constructor(report: FleaseReport) {
    this.#report = report;
  }

  asks(life: string, resource: string, request: WaistRequest): void {
    const key = `${life} ${resource}`;
    const other = this.#busy.get(key);
    if (other !== (request === "attempt" ? undefined : "grant"))
      this.#report("I1", `${life} begins to ${request} ${resource} during its own ${other ?? "nothing"}`);
    this.#busy.set(key, request);
  }

  answered(life: string, resource: string, granted: boolean): void {
    const key = `${life} ${resource}`;
    if (granted) this.#busy.set(key, "grant");
    else this.#busy.delete(key);
  }
}
