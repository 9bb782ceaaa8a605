import { type Clock, Deadlines, LeaseholdError, Room, type Timer, type Timers } from "leasehold/common";
import { GatewayError } from "./errors.js";
import type { Limits } from "./limits.js";
import { Session } from "./session.js";

export interface SessionsWorld {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Returns an id that cannot be guessed. */
  newId(): string;
}

/**
 * Why a session ended. `closed`: its client closed it. `expired`: its client sent nothing for the ttl.
 * `released` and `unused`: a call for leases had opened it, and its last lease was released, or it never got
 * one. `stopped`: the gateway stopped.
 */
export type EndCause = "closed" | "expired" | "released" | "unused" | "stopped";

/** The sessions of a gateway, each until its end. */
export class Sessions {
  readonly #world: SessionsWorld;
  readonly #limits: Limits;
  readonly #ended: (session: Session, cause: EndCause) => void;
  readonly #byId = new Map<string, Session>();
  readonly #ends = new Deadlines<Session>();
  readonly #room: Room;
  #timer: Timer | undefined;
  #timerDueMs = Infinity;
  #isClosed = false;

  /** @param ended is called once for each session that ends, except by `close` */
  constructor(world: SessionsWorld, limits: Limits, ended: (session: Session, cause: EndCause) => void) {
    this.#world = world;
    this.#limits = limits;
    this.#ended = ended;
    this.#room = new Room(limits.sessionsMax, () => {
      const why = `the gateway has ${limits.sessionsMax} sessions at most, and one user no more than are free`;
      return new LeaseholdError("RESOURCES_FULL", why);
    });
  }

  get size(): number {
    return this.#byId.size;
  }

  /**
   * Opens a session, which does not end before the first call of `heard`.
   *
   * @throws LeaseholdError `TTL_OUT_OF_RANGE`, `RESOURCES_FULL`, `CLOSED`
   */
  open(owner: string, ttlMs: number): Session {
    if (this.#isClosed) throw new LeaseholdError("CLOSED", "the gateway is stopping");
    const { ttlMinMs, ttlMaxMs } = this.#limits;
    // Negated, so that NaN is refused.
    if (!(ttlMs >= ttlMinMs && ttlMs <= ttlMaxMs)) {
      const why = `the ttl of a session is from ${ttlMinMs} to ${ttlMaxMs} ms, and not ${ttlMs}`;
      throw new LeaseholdError("TTL_OUT_OF_RANGE", why);
    }
    this.#room.take(owner, 1);
    const session = new Session(this.#world.newId(), owner, ttlMs);
    this.#byId.set(session.id, session);
    return session;
  }

  /**
   * The user's session, unless it has ended by now: the timer may be late.
   *
   * @throws GatewayError `SESSION_GONE`
   */
  find(id: string, owner: string): Session {
    const session = this.#byId.get(id);
    if (session !== undefined) this.endIfDue(session);
    if (session === undefined || session.signal.aborted || session.owner !== owner)
      throw new GatewayError("SESSION_GONE");
    return session;
  }

  /** Records that the client was active at `atMs`, when its request arrived. That may be some time ago. */
  heard(session: Session, atMs: number): void {
    const endsMs = atMs + session.ttlMs;
    // Requests of one client may arrive out of order.
    if (session.endsMs !== Infinity && endsMs <= session.endsMs) return;
    session.endsMs = endsMs;
    this.#ends.schedule(session, endsMs);
    this.#plan();
  }

  endIfDue(session: Session): void {
    if (this.#now() >= session.endsMs) this.end(session, "expired");
  }

  end(session: Session, cause: EndCause): void {
    if (!this.#byId.delete(session.id)) return;
    this.#ends.cancel(session);
    this.#room.release(session.owner, 1);
    session.end();
    this.#ended(session, cause);
  }

  /** Ends all sessions and returns them. No session can be opened from now on. */
  close(): readonly Session[] {
    this.#isClosed = true;
    this.#timer?.cancel();
    const all = [...this.#byId.values()];
    this.#byId.clear();
    for (const session of all) session.end();
    return all;
  }

  #now(): number {
    return this.#world.clock.monotonicMs();
  }

  #plan(): void {
    const dueMs = this.#ends.nextDueMs();
    if (dueMs === Infinity || dueMs >= this.#timerDueMs || this.#isClosed) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    this.#timer = this.#world.timers.after(dueMs - this.#now(), () => {
      this.#timerDueMs = Infinity;
      for (;;) {
        const session = this.#ends.popDue(this.#now());
        if (session === undefined) break;
        this.end(session, "expired");
      }
      this.#plan();
    });
  }
}
