import { setTimeout as sleep } from "node:timers/promises";
import { decodeRecord, encodeRecord } from "../../delta/record/codec.js";
import { decodeEnvelope, encodeEnvelope } from "../../delta/record/envelope.js";
import { leaseRegister, resourceOf } from "../../delta/record/registers.js";
import {
  farmRegister,
  type StoreAnswer,
  type StoreCaller,
  type StoreRequest,
  type StoreTraits,
} from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import { alignedBytes, type DirectFile } from "../block/direct-file.js";
import { fillSectors, envelopeIn } from "../block/layout.js";
import type { OpenedStore, ProbeFinding } from "../common/contract.js";
import { ThreadLimiter } from "../common/thread-limiter.js";
import { ioError } from "../common/io-error.js";
import { kindTraits } from "../common/kind-traits.js";
import { checkLeader, decodeLeader, encodeLeader } from "./leader-record.js";

/**
 * The size of the area that `sanlock direct init` creates: a mebibyte with a sector for each host, and unused
 * ones after them.
 */
export const areaBytes = 1 << 20;
const hostsMax: Readonly<Record<number, number>> = { 512: 2_000, 4_096: 250 };

/** Leasehold's own data, besides the leases, is in the last sector, which sanlock's hosts never use. */
const ownFormat = "leasehold-sanlock/1";

interface Own {
  readonly id: string;
  /** The content of the farm's register. */
  readonly farm?: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A lockspace of sanlock: each of its host ids is a resource, `1` to `2000` (`250` with large sectors), and
 * the holder of one is a live host to every sanlock on the lockspace. All writers share one sector,
 * overwritten blindly as sanlock does: it can't be part of a farm with other stores.
 */
export class SanlockStore implements OpenedStore {
  readonly traits: StoreTraits;
  findings: readonly ProbeFinding[] = [];
  readonly #file: DirectFile;
  readonly #lockspace: string;
  readonly #sector: Uint8Array;
  readonly #limiter = new ThreadLimiter({ atOnceMax: 1 });
  #closing: Promise<void> | undefined;

  constructor(name: string, file: DirectFile, lockspace: string, sectorBytes: number) {
    this.#file = file;
    this.#lockspace = lockspace;
    this.#sector = alignedBytes(sectorBytes);
    this.traits = { name, durable: true, ...kindTraits.sanlock };
  }

  get hostIdMax(): number {
    return hostsMax[this.#sector.length] ?? 0;
  }

  async perform(request: StoreRequest, caller?: StoreCaller): Promise<StoreAnswer> {
    try {
      if (caller?.signal.aborted) throw new LeaseholdError("STORE_UNAVAILABLE", "the caller gave up");
      if (this.#closing !== undefined) {
        throw new LeaseholdError("STORE_UNAVAILABLE", "this store has been closed");
      }
      return await this.#limiter.run(() => this.#answer(request));
    } catch (error) {
      return { kind: "failed", error: ioError(this.traits.name, error) };
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#limiter.run(() => this.#file.close()).finally(() => this.#limiter.close());
    return this.#closing;
  }

  /**
   * Creates the marker if there is none. Concurrent creators end with one marker: both read it again after
   * 2δ.
   */
  async makeMarker(signal: AbortSignal | undefined): Promise<void> {
    if ((await this.#readOwn()) !== undefined) return;
    await this.#writeOwn({ id: globalThis.crypto.randomUUID() });
    await sleep(2 * kindTraits.sanlock.delayMs, undefined, signal === undefined ? {} : { signal });
  }

  async #answer(request: StoreRequest): Promise<StoreAnswer> {
    const own = await this.#readOwn();
    if (own === undefined) throw new LeaseholdError("STORE_FOREIGN", "the lockspace was formatted again");
    const { id } = own;
    switch (request.op) {
      case "read":
        return { kind: "cells", id, cells: await this.#read(request.register, own) };
      case "put":
        await this.#put(request.register, request.next, own);
        return { kind: "written", id };
      case "list":
        return { kind: "registers", id, registers: await this.#list(request.prefix, request.registersMax) };
      case "replace":
        throw new LeaseholdError("UNSUPPORTED", "sanlock's records are overwritten, not replaced");
    }
  }

  async #read(register: string, { farm }: Own): Promise<Uint8Array[]> {
    if (register === farmRegister) return farm === undefined ? [] : [encoder.encode(farm)];
    const hostId = this.#hostIdOf(register);
    const record = decodeLeader(await this.#readLeader(hostId), String(hostId));
    return record === undefined ? [] : [encodeRecord(record)];
  }

  async #put(register: string, next: Uint8Array, own: Own): Promise<void> {
    if (register === farmRegister) return this.#writeOwn({ ...own, farm: decoder.decode(next) });
    const hostId = this.#hostIdOf(register);
    const record = decodeRecord(next);
    // Only a record of this lockspace may be overwritten.
    const sector = await this.#readLeader(hostId);
    encodeLeader(sector, hostId, record);
    await this.#file.write(sector, (hostId - 1) * sector.length);
  }

  async #list(prefix: string, registersMax: number): Promise<Map<string, Uint8Array[]>> {
    const registers = new Map<string, Uint8Array[]>();
    const area = alignedBytes(areaBytes);
    await this.#file.read(area, 0);
    const { length } = this.#sector;
    for (let hostId = 1; hostId <= this.hostIdMax && registers.size < registersMax; hostId += 1) {
      const register = leaseRegister(String(hostId));
      const sector = area.subarray((hostId - 1) * length, hostId * length);
      if (!register.startsWith(prefix)) continue;
      checkLeader(sector, this.#lockspace);
      const record = decodeLeader(sector, String(hostId));
      if (record !== undefined) registers.set(register, [encodeRecord(record)]);
    }
    return registers;
  }

  #hostIdOf(register: string): number {
    const resource = resourceOf(register);
    const hostId = /^[1-9]\d{0,3}$/.test(resource) ? Number(resource) : Infinity;
    if (hostId <= this.hostIdMax && register === leaseRegister(resource)) return hostId;
    throw new LeaseholdError(
      "UNSUPPORTED",
      `the resources of a lockspace are its host ids, 1 to ${this.hostIdMax}; ${JSON.stringify(resource)} is not one`,
    );
  }

  async #readLeader(hostId: number): Promise<Uint8Array> {
    await this.#file.read(this.#sector, (hostId - 1) * this.#sector.length);
    checkLeader(this.#sector, this.#lockspace);
    return this.#sector;
  }

  async #readOwn(): Promise<Own | undefined> {
    await this.#file.read(this.#sector, areaBytes - this.#sector.length);
    const envelope = envelopeIn(this.#sector);
    return envelope === undefined ? undefined : (decodeEnvelope(ownFormat, envelope) as Own);
  }

  #writeOwn({ id, farm }: Own): Promise<void> {
    const envelope = encodeEnvelope(ownFormat, JSON.stringify({ id, farm }));
    return this.#file.write(
      fillSectors(this.#sector, envelope, this.#sector.length),
      areaBytes - this.#sector.length,
    );
  }
}
