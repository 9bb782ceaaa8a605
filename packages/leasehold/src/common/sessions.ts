/** A token's user and expiry. */
interface Session {
  readonly user: string;
  endMs: number;
}

/** Tokens that identify the user of a request. Each stays valid for a fixed time after its last use. */
export class Sessions {
  readonly #ttlMs: number;
  readonly #max: number;
  /** Least recently used first, so the first session expires first. */
  readonly #sessions = new Map<string, Session>();

  /** @param max the number of sessions; beyond it a new one evicts the least recently used */
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

  /** The token's user, or `undefined` if it is unknown or expired. Restarts its validity. */
  use(token: string, nowMs: number): string | undefined {
    const session = this.#sessions.get(token);
    if (session === undefined || session.endMs <= nowMs) return undefined;
    session.endMs = nowMs + this.#ttlMs;
    this.#sessions.delete(token);
    this.#sessions.set(token, session);
    return session.user;
  }

  /** Ends the user's sessions after the password has changed or the user was removed. */
  end(user: string): void {
    for (const [token, session] of this.#sessions) if (session.user === user) this.#sessions.delete(token);
  }

  endAll(): void {
    this.#sessions.clear();
  }

  /** Removes expired sessions. */
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
