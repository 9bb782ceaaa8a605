import { corrupt } from "./corrupt.js";
import { type FromLeader, type MemberId, nobody } from "./types.js";

/**
 * Holds what leaders claim of this server against what it knows. A leader names no index in a heartbeat that this
 * server has not acknowledged to it, and a term has one leader.
 *
 * A claim that is wrong has two explanations. The sender is at fault: then its message is refused, and this server
 * goes on. Or an earlier process of this server has acknowledged that, or voted, and its disk has lost it: then
 * this server must not go on, as it may have forgotten votes. The second one is ruled out in a term that this
 * process has seen begin: it remembers all that this server has done in that term.
 */
export class LeaderClaims {
  #hasFollowed = false;
  #hasSeenTermBegin = false;
  #acknowledged = 0;

  /** Another term. A process that has followed no leader yet may have been in it before it began anew. */
  termBegins(): void {
    this.#hasSeenTermBegin = this.#hasFollowed;
    this.#acknowledged = 0;
  }

  acknowledges(index: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, index);
  }

  /**
   * Why a message is refused; nothing if it is not.
   *
   * @param leader of this term, as far as it is known
   * @param commit what this server knows to be committed
   * @throws LeaseholdError `LOG_CORRUPT` if this server may have lost what it has promised
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
