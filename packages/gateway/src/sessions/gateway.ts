import type { Lease, Leases } from "leasehold";
import { LeaseholdError, Room, type Timer, append, least, parseDuration } from "leasehold/common";
import type { GrantAnswer, LeaseAnswer, SessionAnswer, WaitingAnswer } from "./answers.js";
import { EitherSignal } from "./either-signal.js";
import { KeyedCalls } from "./keyed-calls.js";
import { type Limits, limitsDefault, resourcesMax } from "./limits.js";
import type { AcquireRequest, Call, SessionRequest } from "./requests.js";
import type { GrantCall, Session, Tenure } from "./session.js";
import { type EndCause, Sessions, type SessionsWorld } from "./sessions.js";
import { validForMs } from "./validity.js";

/**
 * The result of a request with an idempotency key: the session that it opened, and the leases if it was a
 * call for leases.
 */
interface Opening {
  readonly session: Session;
  readonly granted?: Promise<readonly Tenure[]>;
}

/**
 * Holds leases for clients that cannot be participants themselves. A client's leases belong to a session,
 * which ends when the client sends nothing for the session's ttl.
 *
 * Safety: every answer states how long its client may rely on a lease (`validForMs`), and the gateway holds
 * the lease for at least that long. That time ends no later than the lease itself can (`Lease.remaining`),
 * and no later than the session. Before the session's end the gateway releases a lease only if its client
 * asks. A gateway that stops or dies leaves its leases to expire. This relies on the guarantees of the
 * ground, and on a client whose steady clock is off by no more than ρ and also counts the time for which its
 * machine sleeps.
 */
export class Gateway {
  readonly #leases: Leases;
  readonly #world: SessionsWorld;
  readonly #limits: Limits;
  readonly #sessions: Sessions;
  /** By user and idempotency key. */
  readonly #openings: KeyedCalls<Opening>;
  readonly #room: Room;
  readonly #ended: (cause: EndCause) => void;

  /** @param ended is called once for each session that ends */
  constructor(
    leases: Leases,
    world: SessionsWorld,
    limits: Limits = limitsDefault,
    ended: (cause: EndCause) => void = () => undefined,
  ) {
    this.#leases = leases;
    this.#world = world;
    this.#limits = limits;
    this.#ended = ended;
    this.#sessions = new Sessions(world, limits, (session, cause) => {
      this.#releaseAll(session);
      ended(cause);
    });
    this.#openings = new KeyedCalls(limits.sessionsMax);
    this.#room = new Room(limits.leasesMax, () => {
      const why = `the gateway has ${limits.leasesMax} leases at most, and one user no more than are free`;
      return new LeaseholdError("RESOURCES_FULL", why);
    });
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** The number of leases that are held or waited for. */
  get wanted(): number {
    return this.#room.used;
  }

  /** The used share of each limit; 1 is full. */
  get quotas(): { readonly sessions: number; readonly leases: number } {
    const { sessionsMax, leasesMax } = this.#limits;
    return { sessions: this.sessions / sessionsMax, leases: this.wanted / leasesMax };
  }

  openSession({ ttl }: SessionRequest, call: Call): SessionAnswer {
    const asked = JSON.stringify(["session", ttl]);
    const key = openingKey(call);
    const known = this.#openings.find(key, asked)?.session;
    // The first answer was lost. Renew: the session's time may be over before the client learns of it.
    if (known !== undefined) return this.renewSession(known.id, call);
    const session = this.#sessions.open(call.owner, this.#ttlOf(ttl));
    this.#sessions.heard(session, call.receivedMs);
    this.#openings.keep(key, asked, { session });
    session.signal.addEventListener("abort", () => this.#openings.forget(key));
    return this.#sessionAnswer(session, call);
  }

  /** Renews a session. The answer lists the client's leases. */
  renewSession(id: string, call: Call): SessionAnswer {
    return this.#sessionAnswer(this.#use(id, call), call);
  }

  /** As `renewSession`, but without renewing. */
  lookAtSession(id: string, call: Call): SessionAnswer {
    return this.#sessionAnswer(this.#sessions.find(id, call.owner), call);
  }

  /** Ends a session and releases its leases. */
  closeSession(id: string, call: Call): void {
    this.#sessions.end(this.#sessions.find(id, call.owner), "closed");
  }

  /**
   * Acquires a lease, or several. Without a session, the call opens one, which ends with the last of these
   * leases. The call ends when its client disconnects; with a session and a key, it ends with its session.
   *
   * @param pollMs after this time the answer is `waiting`. The call continues, and its key finds it
   */
  async acquire(request: AcquireRequest, call: Call, pollMs?: number): Promise<GrantAnswer | WaitingAnswer> {
    const { session: id, ...wishes } = request;
    const asked = JSON.stringify(wishes);
    if (pollMs !== undefined && (id === undefined || call.key === undefined))
      throw invalid("to wait in parts, a call needs a session and an idempotency key");
    if (id === undefined) return this.#acquireAlone(wishes, call, asked);
    if (request.ttl !== undefined) throw invalid("the ttl is that of the session");
    const session = this.#use(id, call);
    const { granted } = session.calls.find(call.key, asked) ?? this.#begin(session, wishes, call, asked);
    const tenures = await (pollMs === undefined ? granted : this.#within(granted, pollMs));
    return tenures === undefined
      ? { waiting: true, session: session.id }
      : this.#grantAnswer(session, tenures, call);
  }

  /** Renews a lease's session. The answer states how long the client may rely on the lease. */
  renewLease(id: string, call: Call): LeaseAnswer {
    const session = this.#use(sessionOf(id), call);
    return this.#leaseAnswer(session, tenureOf(session, id), call);
  }

  lookAtLease(id: string, call: Call): LeaseAnswer {
    const session = this.#sessions.find(sessionOf(id), call.owner);
    return this.#leaseAnswer(session, tenureOf(session, id), call);
  }

  async release(id: string, call: Call): Promise<void> {
    const session = this.#sessions.find(sessionOf(id), call.owner);
    const tenure = tenureOf(session, id);
    session.tenures.delete(id);
    this.#giveBack(session, 1);
    if (session.isImplicit && session.tenures.size === 0) this.#sessions.end(session, "released");
    await tenure.lease.release();
  }

  /** Ends a waiting call, or releases the leases that it was granted: the client no longer wants them. */
  async cancel(id: string, key: string, call: Call): Promise<void> {
    const session = this.#sessions.find(id, call.owner);
    const begun = session.calls.get(key);
    if (begun === undefined) return;
    session.calls.forget(key);
    begun.cancel.abort(new LeaseholdError("CLOSED", "the call was cancelled"));
    const tenures = await begun.granted.catch(() => []);
    const held = tenures.filter(({ id: each }) => session.tenures.has(each));
    await Promise.all(held.map((tenure) => this.release(tenure.id, call)));
  }

  /**
   * Ends all calls. Releases no lease, since clients do not learn of the end and rely on their leases for
   * some time. The leases expire.
   */
  async close(): Promise<void> {
    const sessions = this.#sessions.close();
    for (const _ of sessions) this.#ended("stopped");
    const held = sessions.flatMap(({ tenures }) => [...tenures.values()]);
    await Promise.allSettled(held.map(({ lease }) => lease.detach()));
  }

  /** A call with a key outlives the client's connection. */
  #begin(session: Session, wishes: AcquireRequest, { key, signal }: Call, asked: string): GrantCall {
    const cancel = new AbortController();
    const granted = this.#grant(session, wishes, key === undefined ? signal : cancel.signal);
    const begun = { granted, cancel };
    session.calls.keep(key, asked, begun);
    // Repeating a failed call starts a new one.
    granted.catch(() => session.calls.forget(key));
    return begun;
  }

  async #acquireAlone(wishes: AcquireRequest, call: Call, asked: string): Promise<GrantAnswer> {
    const key = openingKey(call);
    const known = this.#openings.find(key, asked);
    if (known?.granted !== undefined) {
      const tenures = await known.granted;
      return this.#grantAnswer(this.#use(known.session.id, call), tenures, call);
    }
    const session = this.#sessions.open(call.owner, this.#ttlOf(wishes.ttl));
    session.isImplicit = true;
    const granted = this.#grant(session, wishes, call.signal);
    this.#openings.keep(key, asked, { session, granted });
    session.signal.addEventListener("abort", () => this.#openings.forget(key));
    try {
      const tenures = await granted;
      // The session's time starts with the lease: the request may have waited for long.
      this.#sessions.heard(session, this.#now());
      return this.#grantAnswer(session, tenures, call);
    } catch (error) {
      this.#sessions.end(session, "unused");
      throw error;
    }
  }

  async #grant(
    session: Session,
    wishes: AcquireRequest,
    client: AbortSignal | undefined,
  ): Promise<readonly Tenure[]> {
    const names = namesOf(wishes);
    const max = this.#limits.leasesOfSessionMax;
    if (session.wanted + names.length > max)
      throw new LeaseholdError("RESOURCES_FULL", `a session holds and waits for ${max} leases at most`);
    this.#room.take(session.owner, names.length);
    session.wanted += names.length;
    const leases: Lease[] = [];
    try {
      append(leases, await this.#acquired(session, names, wishes, client));
      // The session or the client may have gone meanwhile. Then nobody would know of the leases.
      this.#sessions.endIfDue(session);
      session.signal.throwIfAborted();
      client?.throwIfAborted();
    } catch (error) {
      this.#giveBack(session, names.length);
      await Promise.allSettled(leases.map((lease) => lease.release()));
      throw error;
    }
    return leases.map((lease) => session.add(lease));
  }

  async #acquired(
    { ttlMs, signal }: Session,
    names: readonly string[],
    { resources, wait, maxHold, data, limit, mode, fair }: AcquireRequest,
    client: AbortSignal | undefined,
  ): Promise<readonly Lease[]> {
    const { ttlMinMs, ttlMaxMs } = this.#leases.guarantees;
    using either = new EitherSignal(signal, client);
    const options = {
      // If the gateway dies, the resource stays blocked for the ttl that the client asked for, if the ground
      // allows it.
      ttl: Math.min(Math.max(ttlMs, ttlMinMs), ttlMaxMs),
      signal: either.signal,
      ...(wait !== undefined && { wait }),
      ...(maxHold !== undefined && { maxHold }),
      ...(data !== undefined && { data }),
    };
    const forms = {
      ...(limit !== undefined && { limit }),
      ...(mode !== undefined && { mode }),
      ...(fair !== undefined && { fair }),
    };
    const [name = ""] = names;
    if (resources === undefined) return [await this.#leases.acquire(name, { ...options, ...forms })];
    if (Object.keys(forms).length > 0)
      throw invalid("a call for several resources has no limit, mode or fair");
    return (await this.#leases.acquireAll(names, options)).leases;
  }

  #ttlOf(ttl: string | number | undefined): number {
    return ttl === undefined ? this.#leases.guarantees.ttlMaxMs : parseDuration(ttl);
  }

  #use(id: string, call: Call): Session {
    const session = this.#sessions.find(id, call.owner);
    this.#sessions.heard(session, call.receivedMs);
    return session;
  }

  #releaseAll(session: Session): void {
    this.#giveBack(session, session.tenures.size);
    // Not awaited: a lease that cannot be released expires.
    for (const { lease } of session.tenures.values()) lease.release().catch(() => undefined);
    session.tenures.clear();
  }

  #giveBack(session: Session, count: number): void {
    session.wanted -= count;
    this.#room.release(session.owner, count);
  }

  /** Resolves with `undefined` after `ms`. */
  async #within<T>(outcome: Promise<T>, ms: number): Promise<T | undefined> {
    let timer: Timer | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = this.#world.timers.after(ms, () => resolve(undefined));
    });
    try {
      return await Promise.race([outcome, late]);
    } finally {
      timer?.cancel();
    }
  }

  #sessionAnswer(session: Session, call: Call): SessionAnswer {
    return {
      session: session.id,
      ttlMs: session.ttlMs,
      validForMs: this.#validForMs(session.endsMs - this.#now(), call),
      leases: [...session.tenures.values()].map((tenure) => this.#leaseAnswer(session, tenure, call)),
    };
  }

  #grantAnswer(session: Session, tenures: readonly Tenure[], call: Call): GrantAnswer {
    const leases = tenures.map((tenure) => this.#leaseAnswer(session, tenure, call));
    const valid = leases.map((lease) => lease.validForMs);
    return { session: session.id, ttlMs: session.ttlMs, validForMs: least(valid), leases };
  }

  #leaseAnswer(session: Session, { id, lease }: Tenure, call: Call): LeaseAnswer {
    // A lease that was released here has no time remaining.
    const leftMs = Math.min(lease.remaining(), session.endsMs - this.#now());
    const { resource, slot, holder, token, signal, releaseRequested } = lease;
    return {
      lease: id,
      session: session.id,
      resource,
      slot,
      holder,
      token: String(token),
      ttlMs: session.ttlMs,
      validForMs: this.#validForMs(leftMs, call),
      releaseRequested: releaseRequested.aborted,
      ...(signal.aborted && { lost: lossOf(signal.reason) }),
    };
  }

  #validForMs(leftMs: number, { receivedMs }: Call): number {
    return validForMs(this.#now() - receivedMs, leftMs);
  }

  #now(): number {
    return this.#world.clock.monotonicMs();
  }
}

const invalid = (why: string): LeaseholdError => new LeaseholdError("INVALID_CONFIG", why);

function openingKey({ owner, key }: Call): string | undefined {
  return key === undefined ? undefined : JSON.stringify([owner, key]);
}

/** The id of a lease's session. */
const sessionOf = (id: string): string => id.slice(0, Math.max(0, id.lastIndexOf(".")));

function tenureOf(session: Session, id: string): Tenure {
  const tenure = session.tenures.get(id);
  if (tenure === undefined)
    throw new LeaseholdError(
      "LEASE_LOST",
      "the session has no such lease: it was released, or never granted",
    );
  return tenure;
}

function namesOf({ resource, resources }: AcquireRequest): readonly string[] {
  if (resource !== undefined && resources === undefined) return [resource];
  if (resource !== undefined || resources === undefined)
    throw invalid("a call is for a resource, or for several resources");
  const names = [...new Set(resources)];
  if (names.length === 0 || names.length > resourcesMax)
    throw new LeaseholdError("INVALID_NAME", `a call is for 1 to ${resourcesMax} resources`);
  return names;
}

function lossOf(reason: unknown): string {
  return reason instanceof Error && "reason" in reason && typeof reason.reason === "string"
    ? reason.reason
    : "expired";
}
