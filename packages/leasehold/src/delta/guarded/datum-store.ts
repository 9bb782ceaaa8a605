import { LeaseholdError } from "../../lease/errors.js";
import { decodeRecord } from "../record/codec.js";
import { corrupt, decodeEnvelope, encodeEnvelope, sameBytes } from "../record/envelope.js";
import type { DeltaRecord } from "../record/record.js";
import { leaseRegister, resourceOf } from "../record/registers.js";
import { compareStamps } from "../record/stamp.js";
import type { Store, StoreAnswer, StoreCaller, StoreRequest, StoreTraits } from "../store.js";

/** The format of the datum that follows a record. */
const datumFormat = "leasehold-datum/1";

/** The prefix of cells with a datum, which hides them from readers of plain leases on the same store. */
const datumPrefix = "datum/";

/** Space for the record in front of the datum: the longest name, holder and label fit. */
const recordBytesMax = 4_096;

/** The overhead of a datum's envelope, bytes. */
const datumLineBytes = 32;

/** Cells in the cache. Others cost an additional read. */
const seenMax = 1_000;

const newline = 0x0a;

/** A datum that its holder wants to write with its next renewal. */
export interface Offer {
  readonly datum: string;
  /** The token of the tenure that may write it. */
  readonly token: bigint;
  isWritten: boolean;
}

/** The content of a cell: the lease's record, and the datum that it guards. */
export interface GuardedContent {
  readonly record: DeltaRecord;
  /** Absent if none was ever written. */
  readonly datum?: string;
}

/**
 * Keeps a datum in the cell of its lease (sections 2.3 and 10 of the paper). The algorithm above sees plain
 * records; this store adds to every record the present datum, or the one that the holder offers. A record is
 * replaced only if the whole cell, including the datum, is exactly what was last read. So a process that no
 * longer holds the lease cannot write the datum, whatever its clock says, and a renewal and a write of the
 * datum are one operation.
 */
export class DatumStore implements Store {
  readonly traits: StoreTraits;
  readonly #inner: Store;
  /** The last content read from each register: an assumption that each write verifies. */
  readonly #seen = new Map<string, Uint8Array>();
  /**
   * The tracked registers, with the latest content that this process wrote there and the store acknowledged.
   */
  readonly #followed = new Map<string, { followers: number; latest: GuardedContent | undefined }>();
  readonly #offers = new Map<string, Offer>();

  constructor(inner: Store) {
    const { name, durable, pollMs, delayMs } = inner.traits;
    this.#inner = inner;
    this.traits = {
      name,
      kind: "atomic",
      durable,
      pollMs,
      delayMs,
      bytesMax: recordBytesMax,
    };
  }

  /** The longest datum, in bytes of its JSON text. */
  get datumBytesMax(): number {
    return this.#inner.traits.bytesMax - recordBytesMax - datumLineBytes;
  }

  /** From now on the holder's renewals write the datum, until {@link withdraw} is called. */
  offer(resource: string, token: bigint, datum: string): Offer {
    const offer = { datum, token, isWritten: false };
    this.#offers.set(resource, offer);
    return offer;
  }

  withdraw(resource: string, offer: Offer): void {
    if (this.#offers.get(resource) === offer) this.#offers.delete(resource);
  }

  /** Keeps {@link written} up to date for the resource until the returned function is called. */
  follow(resource: string): () => void {
    const register = datumRegister(resource);
    const followed = this.#followed.get(register) ?? { followers: 0, latest: undefined };
    this.#followed.set(register, followed);
    followed.followers += 1;
    return () => {
      followed.followers -= 1;
      if (followed.followers === 0) this.#followed.delete(register);
    };
  }

  /** The latest content that this process wrote in a tenure since tracking of the resource began. */
  written(resource: string, token: bigint): GuardedContent | undefined {
    const content = this.#followed.get(datumRegister(resource))?.latest;
    return content?.record.epoch === token ? content : undefined;
  }

  async perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    try {
      return await this.#perform(request, caller);
    } catch (error) {
      if (error instanceof LeaseholdError) return { kind: "failed", error };
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    if (request.op === "list") {
      const answer = await this.#inner.perform({ ...request, prefix: inside(request.prefix) }, caller);
      if (answer.kind !== "registers") return answer;
      const registers = [...answer.registers].map(
        ([register, cells]) =>
          [leaseRegister(register.slice(datumPrefix.length)), cells.map(recordPart)] as const,
      );
      return { ...answer, registers: new Map(registers) };
    }
    const register = inside(request.register);
    if (register === request.register) return this.#inner.perform(request, caller);
    if (request.op === "replace") return this.#replace({ ...request, register }, caller);
    return this.#noted(register, await this.#inner.perform({ ...request, register }, caller));
  }

  async #replace(
    request: Extract<StoreRequest, { op: "replace" }>,
    caller: StoreCaller | undefined,
  ): Promise<StoreAnswer> {
    const { register, expected, next } = request;
    let before = this.#seen.get(register);
    if (expected !== undefined && (before === undefined || !sameBytes(recordPart(before), expected))) {
      const answer = await this.#inner.perform({ op: "read", register }, caller);
      if (answer.kind !== "cells") return answer;
      before = answer.cells[0];
      if (before === undefined || !sameBytes(recordPart(before), expected))
        return this.#noted(register, { ...answer, kind: "conflict" });
    }
    const offer = this.#offerFor(register, next);
    const datum = offer?.datum ?? (expected && before ? contentOf(before).datum : undefined);
    const whole = datum === undefined ? next : joined(next, datum);
    const answer = await this.#inner.perform(
      { ...request, expected: expected && before, next: whole },
      caller,
    );
    if (answer.kind !== "written") return this.#noted(register, answer);
    if (offer !== undefined) offer.isWritten = true;
    this.#remember(register, whole);
    this.#acknowledge(register, contentOf(whole));
    return answer;
  }

  /** Only renewals of the tenure that offered a datum write it; other writes keep the present one. */
  #offerFor(register: string, next: Uint8Array): Offer | undefined {
    const offer = this.#offers.get(register.slice(datumPrefix.length));
    if (offer === undefined) return undefined;
    const { epoch, state } = decodeRecord(next);
    return epoch === offer.token && state === "held" ? offer : undefined;
  }

  /** Caches the content, and returns the record alone. */
  #noted(register: string, answer: StoreAnswer): StoreAnswer {
    if (answer.kind !== "cells" && answer.kind !== "conflict") return answer;
    const [cell] = answer.cells;
    if (cell === undefined) this.#seen.delete(register);
    else this.#remember(register, cell);
    return { ...answer, cells: answer.cells.map(recordPart) };
  }

  #remember(register: string, content: Uint8Array): void {
    this.#seen.delete(register);
    this.#seen.set(register, content);
    if (this.#seen.size > seenMax) this.#seen.delete(this.#seen.keys().next().value!);
  }

  /** Compared by stamp: the answer to an earlier write may arrive after the answer to a later one. */
  #acknowledge(register: string, content: GuardedContent): void {
    const followed = this.#followed.get(register);
    if (followed !== undefined && compareStamps(content.record, followed.latest?.record) > 0)
      followed.latest = content;
  }
}

/** The register of a resource's cell; other registers belong to the farm. */
export function datumRegister(resource: string): string {
  return datumPrefix + resource;
}

function inside(register: string): string {
  const prefix = leaseRegister("");
  return register.startsWith(prefix) ? datumPrefix + resourceOf(register) : register;
}

/**
 * Decodes a cell.
 *
 * @throws LeaseholdError `STORE_FOREIGN`, `STORE_CORRUPT`
 */
export function contentOf(cell: Uint8Array): GuardedContent {
  const envelope = recordPart(cell);
  const record = decodeRecord(envelope);
  if (envelope.length === cell.length) return { record };
  const datum = decodeEnvelope(datumFormat, cell.subarray(envelope.length + 1));
  if (typeof datum !== "string") throw corrupt("its datum is not text", cell);
  return { record, datum };
}

function recordPart(cell: Uint8Array): Uint8Array {
  const end = cell.indexOf(newline);
  return end < 0 ? cell : cell.subarray(0, end);
}

function joined(record: Uint8Array, datum: string): Uint8Array {
  const envelope = encodeEnvelope(datumFormat, JSON.stringify(datum));
  const cell = new Uint8Array(record.length + 1 + envelope.length);
  cell.set(record);
  cell[record.length] = newline;
  cell.set(envelope, record.length + 1);
  return cell;
}
