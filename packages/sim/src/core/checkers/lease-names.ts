import type { Applied, CoreState } from "@leasehold/core/inner/state/state.js";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { ReferenceObserver } from "../world/reference.js";
import type { CoreReport } from "../world/invariants.js";

/** At no time do two leases have the same id or the same name. */
export class LeaseNames implements ReferenceObserver {
  readonly #report: CoreReport;
  readonly #names = new Map<bigint, string>();

  constructor(report: CoreReport) {
    this.#report = report;
  }

  applied({ ended, granted }: Applied, { body }: Command): void {
    for (const id of ended) this.#names.delete(id);
    for (const id of granted) {
      if (this.#names.has(id)) this.#report("lease-names", `a second lease ${id}`);
      const name = body.case === "registerLease" ? body.value.name : "";
      if (name !== "" && [...this.#names.values()].includes(name))
        this.#report("lease-names", `a second lease of the name ${name}`);
      this.#names.set(id, name);
    }
  }

  replaced({ leases }: CoreState): void {
    this.#names.clear();
    for (const { id, name = "" } of leases.all()) this.#names.set(id, name);
  }
}
