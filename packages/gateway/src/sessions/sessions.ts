import { type Clock, Deadlines, LeaseholdError, Room, type Timer, type Timers } from "leasehold/common";
import { GatewayError } from "./errors.js";
import type { Limits } from "./limits.js";
import { Session } from "./session.js";

export interface SessionsWorld {
  readonly clock: Clock;
  readonly timers: Timers;
  /** A text that nobody can guess. */
  newId(): string;
}

/**
 * Why a session has ended: its client closed it; nothing was heard of the client for its ttl; its last lease
 * was released, or it never got one, when a call for leases had opened it; the gateway stopped.
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

  /** @param ended is called once for each session that ends, and not by `close` */
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
   * A session that does not end before it is heard of.
   *
   * @throws LeaseholdError `TTL_OUT_OF_RANGE`, `RESOURCES_FULL`, `CLOSED`
   */
  open(owner: string, ttlMs: number): Session {
    if (this.#isClosed) throw new LeaseholdError("CLOSED", "the gateway is stopping");
    const { ttlMinMs, ttlMaxMs } = this.#limits;
    // Written so that NaN is refused.
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
   * The session of this user, if it has not ended by now: a timer may be late.
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

  /** The client was heard of at `atMs`: when its request was received, which may be some time ago. */
  heard(session: Session, atMs: number): void {
    const endsMs = atMs + session.ttlMs;
    // Requests of one client may overtake each other.
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

  /** No session can be opened from now on. Those that there were have ended. */
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
