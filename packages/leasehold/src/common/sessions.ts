/** Whose a token is, and until when. */
interface Session {
  readonly user: string;
  endMs: number;
}

/** Tokens that tell whose a request is, each for a time after its last use. */
export class Sessions {
  readonly #ttlMs: number;
  readonly #max: number;
  /** The one that has not been used for longest comes first: it ends first. */
  readonly #sessions = new Map<string, Session>();

  /** @param max so many are good; the one that has not been used for longest makes room for more */
  constructor(ttlMs: number, max: number) {
    this.#ttlMs = ttlMs;
    this.#max = max;
  }

  get size(): number {
    return this.#sessions.size;
  }

  add(token: string, user: string, nowMs: number): void {
    this.#sessions.delete(token);
    this.#sessions.set(token, { user, endMs: nowMs + this.#ttlMs });
    if (this.#sessions.size > this.#max) this.#sessions.delete(this.#first()!);
  }

  /** Undefined if it is unknown or over. It is good for its whole time again. */
  use(token: string, nowMs: number): string | undefined {
    const session = this.#sessions.get(token);
    if (session === undefined || session.endMs <= nowMs) return undefined;
    session.endMs = nowMs + this.#ttlMs;
    this.#sessions.delete(token);
    this.#sessions.set(token, session);
    return session.user;
  }

  /** The user has another password, or is gone. */
  end(user: string): void {
    for (const [token, session] of this.#sessions) if (session.user === user) this.#sessions.delete(token);
  }

  endAll(): void {
    this.#sessions.clear();
  }

  /** Forgets those that are over. */
  tick(nowMs: number): void {
    for (const [token, { endMs }] of this.#sessions) {
      if (endMs > nowMs) return;
      this.#sessions.delete(token);
    }
  }

  #first(): string | undefined {
    for (const token of this.#sessions.keys()) return token;
    return undefined;
  }
}
