import { ballotsPerMs, numberAt, supersedes, timeOf } from "./ballot.js";
import { emptyReading } from "./clock.js";
import type { Reading } from "./clock.js";
import { clearEntry, emptyEntry } from "./entries/entry.js";
import type { Entry } from "./entries/entry.js";
import { EntryTable } from "./entries/entry-table.js";
import type { EntryCursor } from "./entries/entry-table.js";
import { leaseIsOver } from "./expiry.js";
import { Kind, LeaseState, Refusal } from "./message.js";
import type { Message } from "./message.js";
import { Quotas } from "./quotas.js";
import type { FleaseSettings } from "./settings.js";
import type { StateHash } from "./state-hash.js";

/**
 * The acceptor of section 3.4: the report's Algorithm 1 (a round-based register without a disk) with its
 * repairs. It protects a lease with two nets. Net G: it never replaces an unfinished lease of another owner.
 * Net B: it never accepts a ballot below its promise. It considers a lease over only when both of its clocks
 * say so.
 */
export class Acceptor {
  readonly #settings: FleaseSettings;
  /** Shares of the acceptor's memory; `undefined` where entries are kept elsewhere. */
  readonly quotas: Quotas | undefined;
  readonly #entries: EntryTable;
  /** The current entry: a reused copy, put back into the table after a change. */
  readonly #entry = emptyEntry();
  /**
   * Where `discardIdle` continues. Not part of the state: it affects only when an entry is discarded, never
   * whether it may be.
   */
  #sweep: EntryCursor | undefined;
  #floor = 0;
  /**
   * The stamp of the view whose requests it answers, and the highest ballot that is too old for that view
   * (3.14).
   */
  #view: number;
  #barrier = -1;
  #ready = false;
  #recoveringSinceMono = 0;
  #recoveringSinceWall = 0;
  /**
   * The wall clock at a start whose recovery wait is not over: only promises made before then were forgotten.
   */
  #forgotAtWall: number;

  /**
   * Starts with an empty memory, and therefore silent (3.7).
   *
   * @param seed of the table of its entries: it must be unknown to whoever chooses the names
   */
  constructor(settings: FleaseSettings, now: Reading, seed = 0, keepsEntries = true) {
    this.#settings = settings;
    this.#view = settings.view;
    this.#entries = new EntryTable(seed);
    this.quotas = keepsEntries ? new Quotas(settings.resourcesMax) : undefined;
    this.#forgotAtWall = now.wall;
    this.beginRecoveryWait(now);
    this.wake(now);
  }

  /**
   * An acceptor whose entry for one resource is kept elsewhere and was loaded to handle one request. It has
   * forgotten nothing, so it need not wait. The floor applies to a resource without an entry.
   */
  static loaded(
    settings: FleaseSettings,
    resource: string,
    entry: Readonly<Entry> | undefined,
    floor: number,
    now: Reading,
  ): Acceptor {
    const acceptor = new Acceptor(settings, now, 0, false);
    acceptor.#ready = true;
    acceptor.#floor = floor;
    if (entry !== undefined) acceptor.#entries.set(resource, entry);
    return acceptor;
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Ballots up to this number are refused for resources that have no entry. */
  get floor(): number {
    return this.#floor;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns a copy of a resource's entry. */
  entry(resource: string): Entry | undefined {
    return this.#entries.get(resource, emptyEntry());
  }

  /** Iterates over all entries in no particular order. */
  entries(): EntryCursor {
    return this.#entries.cursor();
  }

  /**
   * Begins the recovery wait: at a start, and again after a clock fault. A clock fault forgets nothing: if
   * clocks have stepped back together, a wait counted from the new wall clock would be too short for
   * forgetting (3.2). For the same reason a fault during the wait after a start must not shorten that wait or
   * lower its floor.
   */
  beginRecoveryWait(now: Reading): void {
    this.#ready = false;
    this.#recoveringSinceMono = now.mono;
    this.#recoveringSinceWall = now.wall;
  }

  /** The rest of the recovery wait on the slower of the two clocks, ms; 0 when it is over. */
  recoveryWaitLeftMs(now: Reading): number {
    if (this.#ready) return 0;
    const rate = this.#recoveringSinceMono + this.#settings.waitRateMs - now.mono;
    const wall = this.#waitsFromWall() + this.#settings.waitWallMs - now.lo;
    return Math.max(0, rate, wall);
  }

  /**
   * Ends the recovery wait when it is over on both clocks (repairs F1, F2, F12). The floor compensates for
   * forgotten promises: every ballot that may have been promised before the start is below it.
   */
  wake(now: Reading): void {
    if (this.#ready || this.recoveryWaitLeftMs(now) > 0) return;
    const floor = numberAt(this.#waitsFromWall() + this.#settings.floorLeadMs) + ballotsPerMs;
    this.#floor = Math.max(this.#floor, floor);
    this.#ready = true;
    this.#forgotAtWall = -Infinity;
  }

  /**
   * How long until a new ballot can be above the promise and within the clock's bound, ms: 0 unless the
   * system time has been set back. This wait must not be shortened: an acceptor that starts meanwhile derives
   * its floor from the present time, and would forget promises beyond it.
   */
  behindMs(resource: string, now: Reading): number {
    const promised = this.#promised(this.#find(resource));
    return Math.max(0, timeOf(promised) - now.wall - this.#settings.maxClockSkewMs - 1);
  }

  /** Answers requests of another view from now on. All entries and promises are kept (3.14, MUST). */
  enterView(view: number, barrier: number): void {
    this.#view = view;
    this.#barrier = barrier;
  }

  /** Handles a request. Returns true when `reply` has been filled in and must be sent to the requester. */
  receive(request: Message, now: Reading, reply: Message): boolean {
    if (!this.#ready) return false;
    if (request.kind === Kind.release) {
      this.#release(request);
      return false;
    }
    this.#fillHead(request, reply);
    if (request.kind === Kind.query) this.#query(request, now, reply);
    else if (request.kind === Kind.read) this.#read(request, now, reply);
    else this.#write(request, now, reply);
    return true;
  }

  /**
   * Whether a request continues something that this acceptor knows: it comes from the holder of a running
   * lease here, or it is the WRITE of a ballot that was promised here. Every other request begins something
   * new, even a WRITE that only other acceptors promised, or one whose ballot has been released.
   */
  continues(request: Message, now: Reading): boolean {
    const entry = this.#find(request.resource);
    if (entry === undefined) return false;
    const { owner, number } = request;
    if (entry.leaseOwner === owner && !this.isOver(entry, now)) return true;
    const isPromised = entry.promisedNumber === number && entry.promisedOwner === owner;
    return request.kind === Kind.write && isPromised && entry.leaseNumber !== number;
  }

  /** Whether the last write accepted here has the request's ballot. */
  wrote({ resource, owner, number }: Message): boolean {
    const entry = this.#find(resource);
    return entry !== undefined && entry.leaseOwner === owner && entry.leaseNumber === number;
  }

  /** Refuses a request without checking anything, which is always safe. */
  refuse(
    request: Message,
    why: typeof Refusal.held | typeof Refusal.busy,
    now: Reading,
    reply: Message,
  ): boolean {
    if (!this.#ready) return false;
    this.#fillHead(request, reply);
    this.#refuse(request, why, now, reply);
    return true;
  }

  #fillHead(request: Message, reply: Message): void {
    reply.view = this.#view;
    reply.instance = request.instance;
    reply.number = request.number;
    reply.sequence = request.sequence;
    reply.refusal = Refusal.none;
    reply.promised = 0;
    reply.leaseState = LeaseState.none;
  }

  /** READ: promise the ballot and report the lease (Algorithm 1, the read half). */
  #read(request: Message, now: Reading, reply: Message): void {
    const entry = this.#find(request.resource);
    if (!this.#passesTests(request, entry, now, reply)) return;
    // A promise to another owner would keep the holder from renewing: none is made while the holder's lease
    // runs (repair F17).
    if (this.#blocks(entry, request.owner, now)) {
      this.#refuse(request, Refusal.held, now, reply);
      return;
    }
    const promising = entry ?? this.#create(request);
    promising.promisedNumber = request.number;
    promising.promisedOwner = request.owner;
    this.#entries.set(request.resource, promising);
    reply.kind = Kind.promise;
    describe(reply, promising, this.#stateOf(promising, now));
  }

  /** WRITE, and ACQ, which is a write with sequence 0 that needs no READ before it. */
  #write(request: Message, now: Reading, reply: Message): void {
    const entry = this.#find(request.resource);
    if (!this.#withinBounds(request, now)) {
      this.#refuse(request, Refusal.outOfBounds, now, reply);
      return;
    }
    if (!this.#passesTests(request, entry, now, reply)) return;
    if (this.#blocks(entry, request.owner, now)) {
      this.#refuse(request, Refusal.held, now, reply);
      return;
    }
    if (entry !== undefined && entry.leaseOwner !== request.owner && !this.#mayKeep(request, entry)) {
      this.#refuse(request, Refusal.full, now, reply);
      return;
    }
    const accepting = entry ?? this.#create(request);
    if (accepting.leaseOwner === request.owner) {
      const order = accepting.leaseNumber - request.number || accepting.leaseSequence - request.sequence;
      if (order > 0 || (order === 0 && accepting.released)) {
        this.#refuse(request, Refusal.stale, now, reply);
        return;
      }
      if (order === 0) {
        reply.kind = Kind.ack; // A duplicate (repair F15).
        return;
      }
    }
    this.#accept(accepting, request, now);
    reply.kind = Kind.ack;
  }

  #accept(entry: Entry, request: Message, now: Reading): void {
    if (entry.leaseOwner !== request.owner) this.#charge(entry, request);
    // A renewal never shortens the guard: its owner may still rely on the longer lease that it renews.
    const renewal = entry.leaseOwner === request.owner && !entry.released;
    const end = now.mono + request.duration * (1 + this.#settings.mutualRateError);
    entry.leaseExpiresWallMs = renewal ? Math.max(entry.leaseExpiresWallMs, request.until) : request.until;
    entry.leaseExpiresMonoMs = renewal ? Math.max(entry.leaseExpiresMonoMs, end) : end;
    entry.leaseOwner = request.owner;
    entry.leaseNumber = request.number;
    entry.leaseSequence = request.sequence;
    entry.released = false;
    entry.token = request.token;
    entry.promisedNumber = request.number;
    entry.promisedOwner = request.owner;
    this.#entries.set(request.resource, entry);
  }

  /** REL frees exactly the ballot that it names: it never overwrites anything else (repair F19). */
  #release(request: Message): void {
    const entry = this.#find(request.resource);
    if (entry === undefined || entry.leaseOwner === "") return;
    if (entry.leaseOwner !== request.owner) return;
    const exact = entry.leaseNumber === request.number && entry.leaseSequence < request.sequence;
    if (!exact) return;
    entry.leaseSequence = request.sequence;
    entry.released = true;
    this.#entries.set(request.resource, entry);
  }

  /**
   * Breaks a lease (3.13): from now on its owner's requests are refused, so the lease runs out. The lease
   * doesn't end any sooner: until then it blocks others as before. False when this acceptor knows no
   * unfinished lease of that owner.
   */
  bar(resource: string, owner: string, now: Reading): boolean {
    const entry = this.#find(resource);
    if (entry === undefined || entry.leaseOwner !== owner || this.isOver(entry, now)) return false;
    entry.barredOwner = owner;
    this.#entries.set(resource, entry);
    return true;
  }

  /**
   * The bar outlives the lease here (MUST), because the broken lease may still run elsewhere. Other acceptors
   * may have accepted a renewal that this one refused, until they received the bar too: one longest lease
   * later at most.
   */
  #barStands(entry: Readonly<Entry>, now: Reading): boolean {
    const { barredOwner, leaseOwner, released, leaseExpiresWallMs, leaseExpiresMonoMs } = entry;
    if (barredOwner === "" || (released && leaseOwner === barredOwner)) return false;
    const { ttlMaxMs, mutualRateError } = this.#settings;
    const moreMs = 2 * ttlMaxMs * (1 + mutualRateError);
    return !leaseIsOver(leaseExpiresWallMs + moreMs, leaseExpiresMonoMs + moreMs, now, this.#settings);
  }

  /** QUERY changes nothing (3.9). */
  #query(request: Message, now: Reading, reply: Message): void {
    const entry = this.#find(request.resource);
    reply.kind = Kind.state;
    reply.promised = entry?.promisedNumber ?? this.#floor;
    describe(reply, entry, this.#stateOf(entry, now));
  }

  /** The checks that READ, WRITE and ACQ share; fills in the refusal when one fails. */
  #passesTests(request: Message, entry: Entry | undefined, now: Reading, reply: Message): boolean {
    const why = this.#refusal(request, entry, now);
    if (why === Refusal.none) return true;
    // If both reasons apply, the refusal names the lease: otherwise the proposer with the slowest clock would
    // forever be given higher promises, never the holder, and would not join the list of waiters.
    const held = why === Refusal.promised && this.#blocks(entry, request.owner, now);
    this.#refuse(request, held ? Refusal.held : why, now, reply);
    return false;
  }

  /** Every refusal names the promise, so that the next ballot can be above it. */
  #refuse(request: Message, why: Refusal, now: Reading, reply: Message): void {
    const entry = this.#find(request.resource);
    reply.kind = Kind.nack;
    reply.refusal = why;
    reply.fullBy = why === Refusal.full ? (this.quotas?.greatest() ?? "") : "";
    reply.promised = this.#promised(entry);
    describe(reply, entry, this.#stateOf(entry, now));
  }

  #promised(entry: Entry | undefined): number {
    return Math.max(entry?.promisedNumber ?? this.#floor, this.#barrier);
  }

  #refusal(request: Message, entry: Entry | undefined, now: Reading): Refusal {
    if (request.view !== this.#view) return Refusal.otherView;
    if (request.number <= this.#barrier) return Refusal.promised;
    // One more millisecond, for the granularity of the two readings.
    if (request.number > numberAt(now.wall + this.#settings.maxClockSkewMs + 1)) return Refusal.outOfBounds;
    if (entry === undefined && !this.#mayKeep(request, entry)) return Refusal.full;
    if (entry?.barredOwner === request.owner) return Refusal.barred;
    const promised = entry?.promisedNumber ?? this.#floor;
    const promisedOwner = entry?.promisedOwner ?? "";
    const { owner, number } = request;
    return supersedes(number, owner, promised, promisedOwner) ? Refusal.none : Refusal.promised;
  }

  /**
   * A token is at most the ballot number, which the common checks bound by the clock. A lease that is too
   * long would outlive the recovery wait (repair F18); one that is already over would only block (F11). The
   * bound uses the plain wall clock: `hi` may have run far ahead, and would admit a lease computed before the
   * clocks stepped back together.
   */
  #withinBounds(request: Message, now: Reading): boolean {
    const { maxClockSkewMs, ttlMaxMs } = this.#settings;
    // A tenure is named by the ballot that began it. A later number would push all later tenures behind it.
    if (request.token > request.number) return false;
    if (request.duration > ttlMaxMs) return false;
    if (request.until > now.wall + maxClockSkewMs + ttlMaxMs) return false;
    return now.lo < request.until + maxClockSkewMs;
  }

  #blocks(entry: Entry | undefined, owner: string, now: Reading): boolean {
    return entry !== undefined && entry.leaseOwner !== owner && !this.isOver(entry, now);
  }

  isOver(entry: Readonly<Entry>, now: Reading): boolean {
    if (entry.leaseOwner === "" || entry.released) return true;
    return leaseIsOver(entry.leaseExpiresWallMs, entry.leaseExpiresMonoMs, now, this.#settings);
  }

  #stateOf(entry: Entry | undefined, now: Reading): LeaseState {
    if (entry === undefined || entry.leaseOwner === "") return LeaseState.none;
    if (entry.released) return LeaseState.released;
    return this.isOver(entry, now) ? LeaseState.over : LeaseState.live;
  }

  #find(resource: string): Entry | undefined {
    return this.#entries.get(resource, this.#entry);
  }

  #mayKeep({ owner, resource }: Message, entry: Entry | undefined): boolean {
    return this.quotas === undefined || this.quotas.mayKeep(entry, owner, this.#entries.nameBytes(resource));
  }

  #charge(entry: Entry, { owner, resource }: Message): void {
    this.quotas?.keep(entry, owner, this.#entries.nameBytes(resource));
  }

  /** Prepares a new entry. It is stored when it is put into the table. */
  #create(request: Message): Entry {
    const entry = clearEntry(this.#entry);
    entry.promisedNumber = this.#floor;
    this.#charge(entry, request);
    return entry;
  }

  /**
   * Forgets resources that have been idle long enough, examining at most `limit` in one call. Forgetting a
   * promise is a crash in disguise, so the floor rises to it (repair F20, section 3.8).
   */
  discardIdle(now: Reading, limit: number): void {
    const { maxClockSkewMs, discardAfterMs } = this.#settings;
    const idleBelow = numberAt(now.lo - 3 * maxClockSkewMs) - ballotsPerMs * discardAfterMs;
    for (let looked = 0; looked < limit; looked += 1) {
      this.#sweep ??= this.#entries.cursor();
      if (!this.#sweep.next()) {
        this.#sweep = undefined;
        return;
      }
      const entry = this.#sweep.read(this.#entry);
      if (entry.promisedNumber >= idleBelow || !this.isOver(entry, now) || this.#barStands(entry, now))
        continue;
      this.#floor = Math.max(this.#floor, entry.promisedNumber);
      this.quotas?.forget(entry, this.#sweep.nameBytes);
      this.#sweep.delete();
    }
  }

  #waitsFromWall(): number {
    return Math.max(this.#recoveringSinceWall, this.#forgotAtWall);
  }

  clone(): Acceptor {
    const copy = new Acceptor(this.#settings, emptyReading());
    copy.#floor = this.#floor;
    copy.enterView(this.#view, this.#barrier);
    copy.#ready = this.#ready;
    copy.#recoveringSinceMono = this.#recoveringSinceMono;
    copy.#recoveringSinceWall = this.#recoveringSinceWall;
    copy.#forgotAtWall = this.#forgotAtWall;
    for (const [resource, entry] of this.#entries.cursor()) {
      entry.payer = 0;
      const owner = entry.leaseOwner === "" ? entry.promisedOwner : entry.leaseOwner;
      copy.quotas!.keep(entry, owner, copy.#entries.nameBytes(resource));
      copy.#entries.set(resource, entry);
    }
    return copy;
  }

  /** Feeds the whole state into `hash`. Two acceptors that hash alike behave alike. */
  hashInto(hash: StateHash): void {
    hash
      .flag(this.#ready)
      .number(this.#floor)
      .number(this.#recoveringSinceMono)
      .number(this.#recoveringSinceWall);
    hash.number(this.#forgotAtWall).number(this.#view).number(this.#barrier);
    const sorted = [...this.#entries.cursor()].sort(([left], [right]) => (left < right ? -1 : 1));
    for (const [resource, entry] of sorted) {
      hash.text(resource).number(entry.promisedNumber).text(entry.promisedOwner).text(entry.leaseOwner);
      hash.number(entry.leaseNumber).number(entry.leaseSequence).number(entry.leaseExpiresWallMs);
      hash.number(entry.leaseExpiresMonoMs).flag(entry.released).number(entry.token);
      hash.text(entry.barredOwner);
    }
  }
}

function describe(reply: Message, entry: Entry | undefined, state: LeaseState): void {
  reply.leaseState = state;
  if (entry === undefined || state === LeaseState.none) return;
  reply.leaseOwner = entry.leaseOwner;
  reply.leaseNumber = entry.leaseNumber;
  reply.leaseSequence = entry.leaseSequence;
  reply.leaseExpiresWallMs = entry.leaseExpiresWallMs;
  reply.leaseToken = entry.token;
}
