/**
 * Guards against two processes under one member's id (`docs/operations.md`). Quorums count ids, so a majority with the one
 * and a majority with the other need not meet: that would be two holders. Whoever is refused because another process
 * is connected as this member must not vote. Pure: it is told the time, on the steady clock.
 */

/** A refusal counts for this long unless the one that refused takes us meanwhile: longer than two attempts to connect take. */
export const TWIN_MEMORY_MS = 15_000;

/** Somebody else was seen under our id: how long this stays in our status. */
export const RIVAL_NOTICE_MS = 60_000;

/** Addresses that are kept; the members of a cluster are fewer. */
const REFUSALS_MAX = 64;

export class TwinWatch {
  /** Members that refused us, by address, and until when that counts. */
  readonly #refusals = new Map<string, number>();
  #refusal = "";
  #rival: { readonly text: string; readonly untilMs: number } | undefined;
  #metMajority = false;

  /** The member at this address is connected to another process with our id. */
  refusedBy(address: string, text: string, nowMs: number): void {
    this.#refusal = text;
    if (this.#refusals.size < REFUSALS_MAX || this.#refusals.has(address))
      this.#refusals.set(address, nowMs + TWIN_MEMORY_MS);
  }

  /** The member at this address has taken us, and we it. */
  acceptedBy(address: string): void {
    this.#refusals.delete(address);
  }

  /** A member tells that another process wants to be us, and was refused. */
  rivalSeen(text: string, nowMs: number): void {
    this.#rival = { text, untilMs: nowMs + RIVAL_NOTICE_MS };
  }

  /** A majority of the members, we among them, is connected. */
  majorityMet(): void {
    this.#metMajority = true;
  }

  /**
   * Whether our acceptor has to be silent: as long as we are refused, and until we have met a majority of the members once. A
   * process that nobody has met may be a second one that nobody could warn of.
   */
  mustBeSilent(nowMs: number): boolean {
    return !this.#metMajority || this.isTwin(nowMs);
  }

  isTwin(nowMs: number): boolean {
    for (const [address, untilMs] of this.#refusals) if (untilMs <= nowMs) this.#refusals.delete(address);
    return this.#refusals.size > 0;
  }

  /** What the operator should know, for the status. */
  notice(nowMs: number): string | undefined {
    if (this.isTwin(nowMs)) return this.#refusal;
    return this.#rival !== undefined && nowMs < this.#rival.untilMs ? this.#rival.text : undefined;
  }
}
