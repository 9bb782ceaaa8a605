import { corrupt } from "./corrupt.js";
import { type FromLeader, type MemberId, nobody } from "./types.js";

/**
 * Checks leaders' claims about this server against its own state. A leader's heartbeat never names a commit
 * index that this server has not acknowledged to it, and a term has only one leader.
 *
 * A false claim has two explanations. Either the sender is faulty: then its message is refused, and this
 * server continues. Or an earlier process of this server acknowledged the entries or voted, and the disk has
 * lost that: then this server must stop, as it may have forgotten votes. The second explanation is impossible
 * in a term that this process has seen begin, since it remembers everything this server did in that term.
 */
export class LeaderClaims {
  #hasFollowed = false;
  #hasSeenTermBegin = false;
  #acknowledged = 0;

  /**
   * Another term begins. If this process has not followed a leader yet, it may have been in the term before
   * its restart.
   */
  termBegins(): void {
    this.#hasSeenTermBegin = this.#hasFollowed;
    this.#acknowledged = 0;
  }

  acknowledges(index: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, index);
  }

  /**
   * Returns the reasons to refuse a message; empty if there are none.
   *
   * @param leader of this term, if known
   * @param commit the known commit index
   * @throws LeaseholdError `LOG_CORRUPT` if this server may have lost what it promised
   */
  objectionsTo(message: FromLeader, leader: MemberId, commit: number): readonly string[] {
    const { from, kind, term } = message;
    if (leader !== nobody && leader !== from) {
      const text = `${hex(leader)} and ${hex(from)} both lead in term ${term}`;
      if (!this.#hasSeenTermBegin) throw corrupt(`${text}: a vote was lost`);
      return [text];
    }
    this.#hasFollowed = true;
    if (kind !== "heartbeat" || !this.#hasSeenTermBegin || message.commit <= commit) return [];
    if (message.commit <= this.#acknowledged) return [];
    return [
      `${hex(from)} commits entries up to ${message.commit}, and this server has acknowledged ${this.#acknowledged} in term ${term}`,
    ];
  }
}

function hex(id: MemberId): string {
  return id.toString(16);
}
