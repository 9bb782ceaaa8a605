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

/**
 * Attempts before a visit is given up because others wrote first each time. It then has no answer, as if the
 * message had been lost.
 */
const redosMax = 16;

/** Parameters for visiting the acceptors of one farm. */
export interface Visiting extends Asking {
  readonly acceptor: StoreAcceptor;
  readonly agreement: Agreement;
  /** The marker that `replace` must name. */
  idOf(store: number): string;
  /** A fresh reading of this process's clocks. */
  now(): Reading;
}

/** The last known content of a register. */
export interface Seen {
  /** `undefined`: never written. */
  readonly content: Uint8Array | undefined;
  readonly record: EntryRecord | undefined;
}

/** The new content of a record, and the result. */
export interface Change<T> {
  /** The content to write. `undefined`, or the present content, writes nothing. */
  readonly next: EntryRecord | undefined;
  readonly value: T;
  /** Concurrent writes of others would not change the result. */
  readonly isFinal?: boolean;
}

export type Revision<T> =
  | { readonly value: T; readonly seen: Seen }
  | { readonly error: LeaseholdError; readonly seen?: undefined };

/** The result of a request, reported once the store has the new state. */
export interface Visit {
  readonly reply: Message | undefined;
  readonly heard: Request | undefined;
}

/** Carries one request to an acceptor. */
export function visit(
  at: Visiting,
  store: number,
  request: Message,
  seen: Seen | undefined,
): Protocol<Revision<Visit>> {
  return revise(at, store, request.resource, seen, (record, now) => {
    const reply = new Message();
    const { next, replies, heard } = at.acceptor.handle(record, request, now, reply);
    // Only this process writes its ballot, so its cached content decides whether there is anything to
    // release.
    const isFinal = request.kind === Kind.release;
    return { next, value: { reply: replies ? reply : undefined, heard }, isFinal };
  });
}

/**
 * Loads a record, computes its successor, writes that by compare-and-set, and only then returns the value
 * (persist before send). If another participant was faster, it starts again, with the present record and a
 * fresh reading of the clock. The outcome of a write without an answer is unknown, so nothing is returned;
 * should the write land later, it has its intended effect or none, because it expects the exact content that
 * it was computed from.
 *
 * `seen` may be the last content that this process wrote: a renewal then costs one write and no read. A value
 * without a write is never returned on the basis of `seen`, which may be out of date.
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

/** The register's content according to the answer to a read, or to a failed comparison. */
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
