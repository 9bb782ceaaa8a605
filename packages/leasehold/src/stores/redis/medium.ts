import type { StoreAnswer, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { ReplaceRequest, AtomicMedium } from "../common/atomic-store.js";
import { drawMarker } from "../common/marker.js";
import { kindTraits } from "../common/kind-traits.js";
import type { RedisAddress } from "./address.js";
import { redisFailure } from "./failure.js";
import type { RedisLink } from "./link.js";
import { readScript, replaceScript } from "./scripts.js";

/** The number of fields per step of a list, which takes about a millisecond of the server's time. */
const scanStep = 1_000;

/** A hash that needs more steps to be listed was not written by leases alone. */
const scanStepsMax = 10_000;

/** A Redis server as a store. Each operation on a cell is one script, which Redis runs atomically. */
export class RedisMedium implements AtomicMedium {
  readonly traits: StoreTraits;
  readonly #address: RedisAddress;
  readonly #link: RedisLink;

  constructor(address: RedisAddress, link: RedisLink, durable: boolean) {
    this.#address = address;
    this.#link = link;
    this.traits = { name: address.name, durable, ...kindTraits.redis };
  }

  async read(register: string): Promise<StoreAnswer> {
    const [id, cell] = await this.#link.run(readScript, [drawMarker(false), register]);
    return { kind: "cells", id: String(id), cells: cellsOf(cell) };
  }

  async replace({ register, id, expected, next }: ReplaceRequest): Promise<StoreAnswer> {
    const condition = expected === undefined ? ["0", ""] : ["1", expected];
    const args = [drawMarker(false), register, id, ...condition, next];
    const [marker, cell, written] = await this.#link.run(replaceScript, args);
    if (written === 1) return { kind: "written", id: String(marker) };
    return { kind: "conflict", id: String(marker), cells: cellsOf(cell) };
  }

  /** Reads the marker last, to detect whether the server has lost data meanwhile. */
  async list(prefix: string, registersMax: number): Promise<StoreAnswer> {
    const registers = new Map<string, readonly Uint8Array[]>();
    const match = `${prefix.replace(/[\\*?[\]]/g, "\\$&")}*`;
    let cursor = "0";
    for (let step = 1; ; step += 1) {
      const words = ["HSCAN", this.#address.key, cursor, "MATCH", match, "COUNT", String(scanStep)];
      const [next, found] = (await this.#link.command(words)) as [Buffer, Buffer[]];
      for (let index = 0; index + 1 < found.length && registers.size < registersMax; index += 2) {
        const register = found[index]!.toString();
        if (register !== "") registers.set(register, [found[index + 1]!]);
      }
      cursor = String(next);
      if (cursor === "0" || registers.size >= registersMax) break;
      if (step === scanStepsMax)
        throw new LeaseholdError("STORE_UNAVAILABLE", `${this.traits.name}: its hash is too large to list`);
    }
    const [id] = await this.#link.run(readScript, [drawMarker(false), ""]);
    return { kind: "registers", id: String(id), registers };
  }

  failure(error: unknown): LeaseholdError {
    return redisFailure(this.traits.name, error);
  }

  close(): Promise<void> {
    this.#link.close();
    return Promise.resolve();
  }
}

function cellsOf(cell: unknown): Uint8Array[] {
  return Buffer.isBuffer(cell) ? [cell] : [];
}
