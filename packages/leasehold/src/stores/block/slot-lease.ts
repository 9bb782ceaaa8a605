import { type BothClocks, readBothClocks } from "../../common/both-clocks.js";
import { clockRateErrorDefault, clocksDisagree, stretched } from "../../common/clock-rates.js";
import { encodeEnvelope, sameBytes } from "../../delta/record/envelope.js";
import { LeaseholdError } from "../../lease/errors.js";
import { type Layout, envelopeIn, slotPosition, type Unit } from "./layout.js";
import type { BlockMedium } from "./medium.js";
import { type BlockWorld, elapsedSince } from "./world.js";

const slotFormat = "leasehold-slot/1";

/** A slot is renewed after a third of its time, so two renewals may fail. */
const renewalsPerLease = 3;

/**
 * After this many consecutive attempts that failed because of competition or a slow device, a process gives
 * up on a slot.
 */
const attemptsMax = 50;

/**
 * A process takes one of this many first unused slots, so a reader needs to check only that many to find the
 * used ones. More than one, so that processes that start together do not all want the same slot.
 */
export const freshSlots = 8;

/**
 * The maximum length of a writer's name in its slot, which is there for people: the envelope has to fit into
 * a sector.
 */
const writerLengthMax = 48;

/**
 * One uninterrupted tenure of a slot. Taking the same slot again begins a new tenure, as another process may
 * have had it in between.
 */
export class SlotTenure {
  readonly slot: number;
  /** The known units of this slot, by region: nobody else writes them during the tenure. */
  readonly units = new Map<number, Unit>();
  /** The start of the write that acquired or last renewed the slot. */
  begun: BothClocks;
  content: Uint8Array;

  constructor(slot: number, written: Written) {
    this.slot = slot;
    this.begun = written.begun;
    this.content = written.content;
  }
}

interface Written {
  readonly begun: BothClocks;
  readonly content: Uint8Array;
}

/**
 * This process's slot on a medium, which nobody else writes while it is held: a Δ-lease on the slot's sector,
 * after Fig. 2 and Fig. 5 of the paper. A sector can only be overwritten, so safety rests on δ alone, as in
 * the paper: every operation is timed by both clocks.
 */
export class SlotLease {
  readonly #medium: BlockMedium;
  readonly #layout: Layout;
  readonly #writer: string;
  readonly #world: BlockWorld;
  readonly #closing = new AbortController();
  #tenure: SlotTenure | undefined;
  #error: LeaseholdError | undefined;
  #running: Promise<void> | undefined;

  constructor(medium: BlockMedium, layout: Layout, writer: string, world: BlockWorld) {
    this.#medium = medium;
    this.#layout = layout;
    this.#writer = writer;
    this.#world = world;
  }

  /** This process's slot, while it can be trusted. */
  get tenure(): SlotTenure | undefined {
    const tenure = this.#tenure;
    if (tenure === undefined) return undefined;
    const { slotLeaseMs } = this.#layout;
    if (clocksDisagree(tenure.begun, readBothClocks(this.#world.clock), slotLeaseMs)) return undefined;
    return elapsedSince(tenure.begun, this.#world) < slotLeaseMs ? tenure : undefined;
  }

  /** The reason why there is no slot. */
  get error(): LeaseholdError {
    return (
      this.#error ??
      new LeaseholdError("STORE_UNAVAILABLE", "this process has lost its slot and takes another one")
    );
  }

  /** Takes a slot, and keeps it or takes another until this object is closed. */
  async open(signal: AbortSignal | undefined): Promise<number> {
    const giveUp =
      signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const { slot } = (this.#tenure = await this.#acquire(giveUp));
    this.#running = this.#keep();
    return slot;
  }

  /**
   * Leaves the slot as it is: others wait until its time is over, because a medium that can only be
   * overwritten has no safe release.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#tenure = undefined;
    await this.#running;
  }

  /** If an operation took δ or longer, another process may have the slot. */
  distrust(): void {
    this.#tenure = undefined;
  }

  /**
   * Renews the slot after a third of its time, or at once after a failure. Takes a slot again if there is
   * none or it has expired.
   */
  async #keep(): Promise<void> {
    const { signal } = this.#closing;
    const { slotLeaseMs, delayMs } = this.#layout;
    for (let pauseMs = slotLeaseMs / renewalsPerLease; !signal.aborted;) {
      try {
        this.#tenure = this.tenure ?? (await this.#acquire(signal));
        await this.#pause(pauseMs, signal);
        pauseMs = slotLeaseMs / renewalsPerLease;
        const { tenure } = this;
        const isKept = tenure !== undefined && (await this.#renew(tenure, signal));
        // A slow write may have ended the tenure meanwhile.
        if (!isKept && this.#tenure === tenure) this.#tenure = undefined;
        this.#error = undefined;
      } catch (error) {
        if (signal.aborted) return;
        this.#error =
          error instanceof LeaseholdError ? error : new LeaseholdError("STORE_UNAVAILABLE", String(error));
        await this.#pause(delayMs, signal).catch(() => undefined);
        pauseMs = 0;
      }
    }
  }

  /** Fig. 2. A slot that was never written needs no first wait, because nobody can be renewing it. */
  async #acquire(signal: AbortSignal): Promise<SlotTenure> {
    const { slots, slotLeaseMs, delayMs } = this.#layout;
    const waitMs = stretched(slotLeaseMs + 6 * delayMs, clockRateErrorDefault);
    const watched = new Map<number, { readonly content: Uint8Array; readonly sinceMs: number }>();
    const monotonicMs = () => this.#world.clock.monotonicMs();
    for (let attempts = 0, begunMs = monotonicMs(); attempts < attemptsMax;) {
      signal.throwIfAborted();
      const begun = readBothClocks(this.#world.clock);
      const contents = await this.#readSlots();
      const seenMs = monotonicMs();
      contents.forEach((content, slot) => {
        const before = watched.get(slot);
        if (content === undefined || (before !== undefined && sameBytes(before.content, content))) return;
        watched.set(slot, { content, sinceMs: seenMs });
      });
      const fresh = freshIn(contents);
      const over = [...watched].flatMap(([slot, { content, sinceMs }]) =>
        isOurs(content) && begun.monotonicMs - sinceMs > waitMs ? [slot] : [],
      );
      const candidates = over.length > 0 ? over : fresh;
      const slot = candidates[Math.floor(this.#world.random.next() * candidates.length)];
      if (slot !== undefined) {
        attempts += 1;
        const tenure = await this.#tryToTake(slot, begun, signal);
        if (tenure !== undefined) return tenure;
      } else if (seenMs - begunMs > 2 * waitMs) {
        throw new LeaseholdError(
          "STORE_FULL",
          `all ${slots} slots are in use; ${slots} processes can write at once`,
        );
      } else {
        await this.#pause(delayMs, signal);
      }
    }
    throw new LeaseholdError("STORE_UNAVAILABLE", `${attemptsMax} attempts to take a slot have failed`);
  }

  /**
   * Lines 8 to 12, timed against δ: a write that ended later than 2δ after its last read began does not
   * count, and neither does a last read that took δ or longer.
   */
  async #tryToTake(
    slot: number,
    readBegun: BothClocks,
    signal: AbortSignal,
  ): Promise<SlotTenure | undefined> {
    const { delayMs } = this.#layout;
    const written = await this.#write(slot);
    if (elapsedSince(readBegun, this.#world) >= 2 * delayMs) return undefined;
    await this.#pause(stretched(2 * delayMs, clockRateErrorDefault), signal);
    return (await this.#stillStands(slot, written.content)) ? new SlotTenure(slot, written) : undefined;
  }

  /** Fig. 5; each of its three operations has to take less than δ. */
  async #renew(tenure: SlotTenure, signal: AbortSignal): Promise<boolean> {
    const { delayMs } = this.#layout;
    if (!(await this.#stillStands(tenure.slot, tenure.content)) || this.tenure !== tenure) return false;
    const written = await this.#write(tenure.slot);
    // From here on the former content is gone. The former tenure counts until the new one is certain.
    tenure.content = written.content;
    if (elapsedSince(written.begun, this.#world) >= delayMs) return false;
    await this.#pause(stretched(2 * delayMs, clockRateErrorDefault), signal);
    if (!(await this.#stillStands(tenure.slot, written.content)) || this.tenure !== tenure) return false;
    tenure.begun = written.begun;
    return true;
  }

  async #write(slot: number): Promise<Written> {
    const writer = this.#writer.slice(0, writerLengthMax);
    const nonce = globalThis.crypto.randomUUID();
    const content = encodeEnvelope(slotFormat, JSON.stringify({ slot, writer, nonce }));
    const begun = readBothClocks(this.#world.clock);
    await this.#medium.alone(() => this.#medium.writeEnvelope(slotPosition(slot), content));
    return { begun, content };
  }

  /** A read that took δ or longer is too old. */
  async #stillStands(slot: number, content: Uint8Array): Promise<boolean> {
    const begun = readBothClocks(this.#world.clock);
    const found = await this.#medium.alone(() => this.#medium.readEnvelope(slotPosition(slot)));
    const inTime = elapsedSince(begun, this.#world) < this.#layout.delayMs;
    return inTime && found !== undefined && sameBytes(found, content);
  }

  /** Reads the content of every slot at once. */
  #readSlots(): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#medium.alone(async () => {
      const units = await this.#medium.readUnits(slotPosition(0), this.#layout.slots);
      return units.map((unit) => envelopeIn(unit)?.slice());
    });
  }

  /** Keeping a slot does not keep the process alive; waiting for the first one does. */
  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return this.#world.sleep(ms, signal, this.#running === undefined);
  }
}

/** The unused slots that may be taken. */
function freshIn(contents: readonly (Uint8Array | undefined)[]): number[] {
  const first = contents.indexOf(undefined);
  if (first === -1) return [];
  return contents.flatMap((content, slot) =>
    content === undefined && slot < first + freshSlots ? [slot] : [],
  );
}

/** A damaged slot counts as used, as its holder rewrites it. A foreign one is not touched. */
function isOurs(content: Uint8Array): boolean {
  const name = "leasehold-";
  return [...name].every((letter, index) => content[index] === letter.charCodeAt(0));
}
