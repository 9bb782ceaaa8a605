import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import type { Applied, CoreState } from "@leasehold/core/inner/state/state.js";
import type { CoreReport } from "../world/invariants.js";
import type { ReferenceObserver } from "../world/reference.js";
import type { CoreWorld, Outcome } from "../world/world.js";

/**
 * No user reads or writes without the right to, and no user who has the right is refused. Once a change is
 * answered it holds at every server. The log applies no command of a user between the end of its rights and
 * their next beginning, according to a count that is kept here.
 */
export class RightsJudge implements ReferenceObserver {
  readonly #world: CoreWorld;
  readonly #report: CoreReport;
  #isThere = false;
  #hasRole = false;

  constructor(world: CoreWorld) {
    this.#world = world;
    this.#report = world.report;
  }

  applied({ changes, isDone }: Applied, { body, caller }: Command, index: number): void {
    if (!isDone) return;
    if (caller?.user === "ann" && changes.length > 0 && !(this.#isThere && this.#hasRole))
      this.#report("rights", `entry ${index} writes for a user who has no right to`);
    if (body.case === "userAdd" && body.value.name === "ann") this.#isThere = true;
    if (body.case === "userDelete") [this.#isThere, this.#hasRole] = [false, false];
    if (body.case === "userGrantRole" && body.value.user === "ann") this.#hasRole = true;
    if (body.case === "userRevokeRole") this.#hasRole = false;
  }

  replaced({ auth }: CoreState): void {
    const ann = auth.users().find(({ name }) => name === "ann");
    this.#isThere = ann !== undefined;
    this.#hasRole = ann?.roles.includes("some") === true;
  }

  /** A server that started after the right had certainly ended must reveal nothing from before its start. */
  shown(isShown: boolean, what: string): void {
    this.#world.counters.rightsAtStart += 1;
    if (isShown) this.#report("rights", `${what} is shown by a server that began after its right had ended`);
  }

  /**
   * The outcome of a use that was requested after a change was answered, and was answered itself before the
   * next change.
   */
  used(outcome: Outcome, what: string, isAllowed: boolean): void {
    if (outcome === "lost") return;
    const failure = outcome instanceof CoreError ? outcome.failure : undefined;
    if (failure === undefined) this.#world.counters.rightsUses += 1;
    if (failure === undefined && !isAllowed) this.#report("rights", `${what} without a right is answered`);
    if (failure === "permissionDenied") this.#world.counters.rightsRefusals += 1;
    if (failure === "permissionDenied" && isAllowed)
      this.#report("rights", `${what} is refused, and its user has the right`);
  }
}
