/**
 * A member's consent to changes. Two members that begin a change at the same moment would make two joint
 * views, and with half of the members in each neither would ever end. So each asks all members for consent,
 * and at most one of the two gets a majority.
 */
export class Consents {
  readonly #consentMs: number;
  readonly #standBackMs: number;
  /** The member that has our consent, the view that it is for, and its expiry (steady clock). */
  #to = "";
  #stamp = 0;
  #untilMono = -Infinity;
  /** The member whose change takes precedence, and until when we don't ask for consent (steady clock). */
  #first = "";
  #standsBackUntilMono = -Infinity;

  /**
   * @param consentMs how long a consent is valid
   * @param standBackMs how long a member that stands back doesn't ask for consent
   */
  constructor(consentMs: number, standBackMs: number) {
    this.#consentMs = consentMs;
    this.#standBackMs = standBackMs;
  }

  /** The member that was last given consent; `""` for none. */
  get to(): string {
    return this.#to;
  }

  /** Gives the consent to begin a change of the view with this stamp. False while another member has it. */
  give(to: string, stamp: number, mono: number): boolean {
    const isGiven = this.#stamp === stamp && mono < this.#untilMono;
    if (isGiven && this.#to !== to) return false;
    this.#to = to;
    this.#stamp = stamp;
    this.#untilMono = mono + this.#consentMs;
    return true;
  }

  /** The member whose change takes precedence at this time; `undefined` for none. */
  goesFirst(mono: number): string | undefined {
    return mono < this.#standsBackUntilMono ? this.#first : undefined;
  }

  /**
   * Yields to a smaller id. Two members may each have the consent of half, and would keep it by asking again.
   * Until ours has expired everywhere, the smaller id takes precedence.
   */
  standBack(first: string, mono: number): void {
    this.#first = first;
    this.#standsBackUntilMono = mono + this.#standBackMs;
    this.#to = "";
    this.#untilMono = -Infinity;
  }
}
