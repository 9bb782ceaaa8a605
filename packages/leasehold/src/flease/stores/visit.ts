import type { Protocol } from "../../delta/effects.js";
import { corrupt, sameBytes } from "../../delta/record/envelope.js";
import type { StoreAnswer } from "../../delta/store.js";
import type { Reading } from "../protocol/clock.js";
import { Kind, Message } from "../protocol/message.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Agreement } from "./agreement.js";
import { type Asking, ask, cellsIn } from "./ask.js";
import { decodeEntry, encodeEntry } from "./codec.js";
import type { EntryRecord, Request } from "./record.js";
import { entryRegister } from "./registers.js";
import type { StoreAcceptor } from "./store-acceptor.js";

/** Somebody else was faster each time: then nothing is answered, as if the message had been lost. */
const redosMax = 16;

/** What it takes to visit the acceptors of one farm. */
export interface Visiting extends Asking {
  readonly acceptor: StoreAcceptor;
  readonly agreement: Agreement;
  /** The marker that `replace` has to name. */
  idOf(store: number): string;
  /** A fresh reading of this process's clocks. */
  now(): Reading;
}

/** What a register is known to have held. */
export interface Seen {
  /** `undefined`: never written. */
  readonly content: Uint8Array | undefined;
  readonly record: EntryRecord | undefined;
}

/** What becomes of a record. */
export interface Change<T> {
  /** What to write; `undefined`, or what stands there already, for nothing. */
  readonly next: EntryRecord | undefined;
  readonly value: T;
  /** Nothing that others may have written meanwhile would change it. */
  readonly isFinal?: boolean;
}

export type Revision<T> =
  | { readonly value: T; readonly seen: Seen }
  | { readonly error: LeaseholdError; readonly seen?: undefined };

/** What came of a request: to be told, as it is in the store. */
export interface Visit {
  readonly reply: Message | undefined;
  readonly heard: Request | undefined;
}

/** One request's way to an acceptor. */
export function visit(
  at: Visiting,
  store: number,
  request: Message,
  seen: Seen | undefined,
): Protocol<Revision<Visit>> {
  return revise(at, store, request.resource, seen, (record, now) => {
    const reply = new Message();
    const { next, replies, heard } = at.acceptor.handle(record, request, now, reply);
    // Only this process writes its ballot, so what it last saw tells whether there is anything to release.
    const isFinal = request.kind === Kind.release;
    return { next, value: { reply: replies ? reply : undefined, heard }, isFinal };
  });
}

/**
 * Loads a record, computes what becomes of it, writes that by compare-and-set, and only then returns the value (persist
 * before send). If another was faster, all of it again, with the record as it is now and a fresh reading of the clock. A write
 * without an answer is unknown, so nothing is returned; should it land later, it does what it would have done then, or
 * nothing, since it expects the very content that it was computed from.
 *
 * `seen` may be what this process wrote last: a renewal then costs one write and no read. A value that nothing was written
 * for is never returned on the strength of that, as it may be out of date.
 */
export function* revise<T>(
  at: Visiting,
  store: number,
  resource: string,
  seen: Seen | undefined,
  change: (record: EntryRecord | undefined, now: Reading) => Change<T>,
): Protocol<Revision<T>> {
  const register = entryRegister(resource);
  const id = at.idOf(store);
  const refusal = yield* at.agreement.at(store, id);
  if (refusal !== undefined) return { error: refusal };
  let known = seen;
  let fresh = false;
  for (let redos = 0; redos <= redosMax; redos += 1) {
    if (known === undefined) {
      const read = seenIn(at, yield* ask(at, store, { op: "read", register }), resource);
      if ("error" in read) return read;
      known = read;
      fresh = true;
    }
    const { next, value, isFinal } = change(known.record, at.now());
    const content = next && encodeEntry(next);
    if (content === undefined || (known.content !== undefined && sameBytes(content, known.content))) {
      if (fresh || isFinal === true) return { value, seen: known };
      known = undefined;
      continue;
    }
    const { content: expected } = known;
    const answer = yield* ask(at, store, { op: "replace", register, id, expected, next: content });
    if (answer?.kind === "written") return { value, seen: { content, record: next } };
    const found = seenIn(at, answer, resource);
    if ("error" in found) return found;
    known = found;
    fresh = true;
  }
  return { error: new LeaseholdError("STORE_UNAVAILABLE", "others wrote to the register all the time") };
}

/** What the answer to a read, or to a write that found something else, says of a resource's register. */
export function seenIn(
  at: Pick<Visiting, "acceptor" | "now">,
  answer: StoreAnswer | undefined,
  resource: string,
): Seen | { readonly error: LeaseholdError } {
  const cells = cellsIn(answer);
  if (cells instanceof LeaseholdError) return { error: cells };
  const [content] = cells;
  if (content === undefined) return { content: undefined, record: undefined };
  try {
    if (cells.length > 1) throw corrupt("there are several where only one can be", content);
    const record = decodeEntry(content);
    if (record.resource !== resource)
      throw corrupt(`it stands where that of ${JSON.stringify(resource)} belongs`, content);
    at.acceptor.checkTimes(record, at.now());
    return { content, record };
  } catch (error) {
    if (error instanceof LeaseholdError) return { error };
    throw error;
  }
}
