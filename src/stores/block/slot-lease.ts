import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { sameBytes } from "../../delta/line.js";
import { decodeLine, encodeLine } from "../../delta/line.js";
import { stretched } from "../../delta/lease-protocol.js";
import { LeaseholdError } from "../../lease/errors.js";
import { type Layout, lineIn, slotPosition } from "./layout.js";
import type { BlockMedium } from "./medium.js";

const slotFormat = "leasehold-slot/1";

/** ρ: twice what the clocks of real machines are off by at the worst. */
const clockRateError = 0.001;

/** A slot is renewed when a third of its time is over: two renewals may fail. */
const renewalsPerLease = 3;

/** Attempts that others, or a slow device, spoil one after the other until a process says that it gets no slot. */
const attemptsMax = 50;

interface Hold {
  readonly slot: number;
  readonly begunMs: number;
  readonly begunWallMs: number;
  readonly content: Uint8Array;
}

/**
 * This process's slot on a medium, which nobody else writes while it is held: a Δ-lease of its own on the unit that stands for the
 * slot, after Fig. 2 and Fig. 5 of the paper. A unit can only be overwritten, so its safety rests on δ alone, as the paper's does.
 */
export class SlotLease {
  readonly #medium: BlockMedium;
  readonly #layout: Layout;
  readonly #writer: string;
  readonly #closing = new AbortController();
  #hold: Hold | undefined;
  #error: LeaseholdError | undefined;
  #running: Promise<void> | undefined;

  constructor(medium: BlockMedium, layout: Layout, writer: string) {
    this.#medium = medium;
    this.#layout = layout;
    this.#writer = writer;
  }

  /** The slot, as long as it can be trusted. */
  get slot(): number | undefined {
    return this.#hold !== undefined && this.#leftMs(this.#hold) > 0 ? this.#hold.slot : undefined;
  }

  /** Why there is none. */
  get error(): LeaseholdError {
    return (
      this.#error ??
      new LeaseholdError("STORE_UNAVAILABLE", "this process has lost its slot and takes another one")
    );
  }

  /** Takes a slot, and from then on keeps it or takes another, until it is closed. */
  async open(signal: AbortSignal | undefined): Promise<number> {
    const giveUp =
      signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const { slot } = (this.#hold = await this.#acquire(giveUp));
    this.#running = this.#keep();
    return slot;
  }

  /** Leaves the slot as it is: whoever wants it waits until its time is over. A medium that can only write has no safe release. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#hold = undefined;
    await this.#running;
  }

  /** Whoever's operation took δ or longer can trust its slot no more. */
  distrust(): void {
    this.#hold = undefined;
  }

  async #keep(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (this.#hold === undefined) this.#hold = await this.#acquire(signal);
        await this.#pause(this.#layout.slotLeaseMs / renewalsPerLease, signal);
        if (this.slot === undefined) this.#hold = undefined;
        else this.#hold = await this.#renew(this.#hold, signal);
        this.#error = undefined;
      } catch (error) {
        if (signal.aborted) return;
        this.#error =
          error instanceof LeaseholdError ? error : new LeaseholdError("STORE_UNAVAILABLE", String(error));
        await this.#pause(this.#layout.delayMs, signal).catch(() => undefined);
      }
    }
  }

  /** Fig. 2. A slot that was never written needs no first wait: nobody can be renewing it. */
  async #acquire(signal: AbortSignal): Promise<Hold> {
    const { slots, slotLeaseMs, delayMs } = this.#layout;
    const waitMs = stretched(slotLeaseMs + 6 * delayMs, clockRateError);
    const watched = new Map<number, { readonly content: Uint8Array; readonly sinceMs: number }>();
    for (let attempts = 0, begunMs = performance.now(); attempts < attemptsMax;) {
      signal.throwIfAborted();
      const readMs = performance.now();
      const contents = await this.#readSlots();
      const seenMs = performance.now();
      contents.forEach((content, slot) => {
        const before = watched.get(slot);
        if (content === undefined || (before !== undefined && sameBytes(before.content, content))) return;
        watched.set(slot, { content, sinceMs: seenMs });
      });
      const unused = contents.flatMap((content, slot) => (content === undefined ? [slot] : []));
      const over = [...watched].flatMap(([slot, { sinceMs }]) => (readMs - sinceMs > waitMs ? [slot] : []));
      const candidates = unused.length > 0 ? unused : over;
      const slot = candidates[Math.floor(Math.random() * candidates.length)];
      if (slot !== undefined) {
        attempts++;
        const hold = await this.#tryToTake(slot, readMs, signal);
        if (hold !== undefined) return hold;
      } else if (seenMs - begunMs > 2 * waitMs) {
        throw new LeaseholdError(
          "STORE_FULL",
          `all ${slots} slots are in use; ${slots} processes can write at once`,
        );
      } else {
        await this.#pause(delayMs, signal);
      }
    }
    throw new LeaseholdError("STORE_UNAVAILABLE", `of ${attemptsMax} attempts to take a slot none succeeded`);
  }

  /** Lines 8 to 12, with the watch on δ: a write that ended later than 2δ after its last read began counts for nothing. */
  async #tryToTake(slot: number, readMs: number, signal: AbortSignal): Promise<Hold | undefined> {
    const { delayMs } = this.#layout;
    const hold = await this.#write(slot);
    if (performance.now() - readMs >= 2 * delayMs) return undefined;
    await this.#pause(stretched(2 * delayMs, clockRateError), signal);
    return (await this.#isMine(hold)) ? hold : undefined;
  }

  /** Fig. 5. */
  async #renew(hold: Hold, signal: AbortSignal): Promise<Hold | undefined> {
    if (!(await this.#isMine(hold))) return undefined;
    const next = await this.#write(hold.slot);
    // From here on the former content is gone. The former hold counts until the new one is certain.
    this.#hold = { ...hold, content: next.content };
    await this.#pause(stretched(2 * this.#layout.delayMs, clockRateError), signal);
    return (await this.#isMine(next)) ? next : undefined;
  }

  async #write(slot: number): Promise<Hold> {
    const content = encodeLine(
      slotFormat,
      JSON.stringify({ slot, writer: this.#writer, nonce: globalThis.crypto.randomUUID() }),
    );
    const hold = { slot, begunMs: performance.now(), begunWallMs: Date.now(), content };
    await this.#medium.alone(() => this.#medium.writeLine(slotPosition(slot), content));
    return hold;
  }

  async #isMine({ slot, content }: Hold): Promise<boolean> {
    const found = await this.#medium.alone(() => this.#medium.readLine(slotPosition(slot)));
    return found !== undefined && sameBytes(found, content);
  }

  /** What stands in every slot, with one read. Something foreign in one is left alone. */
  #readSlots(): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#medium.alone(async () => {
      const units = await this.#medium.readUnits(slotPosition(0), this.#layout.slots);
      return units.map((unit) => {
        const line = lineIn(unit)?.slice();
        if (line !== undefined) decodeLine(slotFormat, line);
        return line;
      });
    });
  }

  /** By the clock that went further. */
  #leftMs({ begunMs, begunWallMs }: Hold): number {
    const elapsedMs = Math.max(performance.now() - begunMs, Date.now() - begunWallMs);
    return this.#layout.slotLeaseMs - elapsedMs;
  }

  /** Keeping a slot does not keep the process; waiting for the first one does. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(ms, undefined, { signal, ref: this.#running === undefined });
  }
}
