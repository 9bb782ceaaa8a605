import { corrupt } from "./corrupt.js";
import type { ConfigChange, Entry, MemberId, Membership } from "./types.js";

export function isMember(membership: Membership, id: MemberId): boolean {
  return membership.voters.includes(id) || membership.learners.includes(id);
}

/** Returns the membership after a change of one member (thesis 4.1); `undefined` if the change is invalid. */
export function changed(membership: Membership, change: ConfigChange): Membership | undefined {
  const { voters, learners } = membership;
  const { kind, member } = change;
  const votes = voters.includes(member);
  const learns = learners.includes(member);
  switch (kind) {
    case "add-voter":
      return votes || learns ? undefined : { voters: [...voters, member], learners };
    case "add-learner":
      return votes || learns ? undefined : { voters, learners: [...learners, member] };
    case "promote":
      return learns
        ? { voters: [...voters, member], learners: learners.filter((id) => id !== member) }
        : undefined;
    case "remove":
      if (learns) return { voters, learners: learners.filter((id) => id !== member) };
      return votes && voters.length > 1
        ? { voters: voters.filter((id) => id !== member), learners }
        : undefined;
  }
}

interface Era {
  /** Index of the entry that introduced it. */
  readonly index: number;
  readonly membership: Membership;
}

/**
 * The membership in effect from each entry on. A server uses the newest one in its log, committed or not
 * (thesis 4.1), and returns to the one before if that entry is replaced.
 */
export class Memberships {
  /** Ordered by index; never empty. */
  #eras: Era[];

  constructor(index: number, membership: Membership) {
    this.#eras = [{ index, membership }];
  }

  get current(): Membership {
    return this.#eras.at(-1)!.membership;
  }

  /** Index at which the current membership began: a change is pending until this entry is committed. */
  get currentIndex(): number {
    return this.#eras.at(-1)!.index;
  }

  /**
   * Whether a server may stand for election. A server that is being removed may, until the removal is
   * committed: perhaps only that server has the change, and then the others would vote for no other (thesis
   * 4.2.2).
   */
  mayStand(id: MemberId, commit: number): boolean {
    if (this.current.voters.includes(id)) return true;
    return this.currentIndex > commit && this.#eras.at(-2)?.membership.voters.includes(id) === true;
  }

  /** An entry was appended to the log. */
  append(entry: Entry): void {
    if (entry.kind !== "config") return;
    const membership = changed(this.current, entry.change);
    if (membership === undefined)
      throw corrupt(
        `entry ${entry.index} is to ${entry.change.kind} ${entry.change.member}, which is impossible here`,
      );
    this.#eras.push({ index: entry.index, membership });
  }

  /** The log was truncated: entries from `index` on are gone. */
  truncate(index: number): void {
    while (this.#eras.length > 1 && this.currentIndex >= index) this.#eras.pop();
  }

  /** Returns the membership after the entry at `index`, which must not be before the log begins. */
  at(index: number): Membership {
    return this.#eras.findLast((era) => era.index <= index)!.membership;
  }

  /** The log now begins after `index`. */
  compact(index: number): void {
    const first = this.#eras.findLastIndex((era) => era.index <= index);
    if (first > 0) this.#eras.splice(0, first);
  }

  /** A snapshot has replaced the log. */
  restore(index: number, membership: Membership): void {
    this.#eras = [{ index, membership }];
  }
}
