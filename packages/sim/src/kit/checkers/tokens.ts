export interface TokenReports {
  /** Two tenures have one token. */
  twice(text: string): void;
  /** A tenure's token is not greater than every earlier one. */
  falls(text: string): void;
}

export interface Given<Token> {
  readonly resource: string;
  readonly token: Token;
  readonly who: string;
  /** Shared holds may have the same token. Default: none may. */
  readonly shared?: boolean;
  /** Whether tokens of this moment must rise. Default: they must. */
  readonly ordered?: boolean;
}

/** Fencing tokens: no two tenures of a resource have the same, and each has a greater one than every tenure before it. */
export class Tokens<Token extends number | bigint> {
  readonly #reports: TokenReports;
  readonly #greatest = new Map<string, Token>();
  /** By resource and token: whether it is shared. */
  readonly #given = new Map<string, Map<Token, boolean>>();

  constructor(reports: TokenReports) {
    this.#reports = reports;
  }

  given({ resource, token, who, shared = false, ordered = true }: Given<Token>): void {
    let given = this.#given.get(resource);
    if (given === undefined) this.#given.set(resource, (given = new Map()));
    const before = given.get(token);
    if (before !== undefined && !(before && shared))
      this.#reports.twice(`the token ${token} of ${resource} is given out twice, now to ${who}`);
    given.set(token, shared);
    if (!ordered) return;
    const greatest = this.#greatest.get(resource);
    if (greatest === undefined || token > greatest) this.#greatest.set(resource, token);
    else if (token < greatest || !shared)
      this.#reports.falls(`${who} gets token ${token} of ${resource} after ${greatest}`);
  }
}
