import { corrupt } from "./corrupt.js";
import type { ConfigChange, Entry, MemberId, Membership } from "./types.js";

export function isMember(membership: Membership, id: MemberId): boolean {
  return membership.voters.includes(id) || membership.learners.includes(id);
}

/** The membership after a change of one member (thesis 4.1); `undefined` if the change makes no sense. */
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
  /** Of the entry that made it so. */
  readonly index: number;
  readonly membership: Membership;
}

/**
 * Which membership holds from which entry on. A server uses the newest of its log, whether or not it is
 * committed (thesis 4.1), and so goes back to the one before when that entry is replaced.
 */
export class Memberships {
  /** In the order of their indices; never empty. */
  #eras: Era[];

  constructor(index: number, membership: Membership) {
    this.#eras = [{ index, membership }];
  }

  get current(): Membership {
    return this.#eras.at(-1)!.membership;
  }

  /** Where the current one began: a change is pending until this is committed. */
  get currentIndex(): number {
    return this.#eras.at(-1)!.index;
  }

  /**
   * Whether a server may stand for election. One that a change removes must, until that is committed: it may
   * be the only one that has the change, and so the only one that the others would vote for (thesis 4.2.2).
   */
  mayStand(id: MemberId, commit: number): boolean {
    if (this.current.voters.includes(id)) return true;
    return this.currentIndex > commit && this.#eras.at(-2)?.membership.voters.includes(id) === true;
  }

  /** Takes note of an entry that was appended to the log. */
  append(entry: Entry): void {
    if (entry.kind !== "config") return;
    const membership = changed(this.current, entry.change);
    if (membership === undefined)
      throw corrupt(
        `entry ${entry.index} is to ${entry.change.kind} ${entry.change.member}, which is impossible here`,
      );
    this.#eras.push({ index: entry.index, membership });
  }

  /** The log was cut: entries from `index` on are gone. */
  truncate(index: number): void {
    while (this.#eras.length > 1 && this.currentIndex >= index) this.#eras.pop();
  }

  /** The membership once the entry at `index` had been appended; not before the log begins. */
  at(index: number): Membership {
    return this.#eras.findLast((era) => era.index <= index)!.membership;
  }

  /** The log now begins after `index`. */
  compact(index: number): void {
    const first = this.#eras.findLastIndex((era) => era.index <= index);
    if (first > 0) this.#eras.splice(0, first);
  }

  /** The log was replaced by a snapshot. */
  restore(index: number, membership: Membership): void {
    this.#eras = [{ index, membership }];
  }
}
