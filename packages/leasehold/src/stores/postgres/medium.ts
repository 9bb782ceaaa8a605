import type { StoreAnswer, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { ReplaceRequest, AtomicMedium } from "../common/atomic-store.js";
import { drawMarker } from "../common/marker.js";
import { kindTraits } from "../common/kind-traits.js";
import type { PostgresAddress } from "./address.js";
import { postgresFailure } from "./failure.js";
import type { PostgresLink } from "./link.js";
import { type Statements, statementsIn } from "./statements.js";

/**
 * The maximum number of retries. Each time, another process has emptied the table between the creation of the
 * marker and its read.
 */
const markerTriesMax = 3;

/** A PostgreSQL server as a store, with a row for each register. */
export class PostgresMedium implements AtomicMedium {
  readonly traits: StoreTraits;
  readonly #link: PostgresLink;
  readonly #statements: Statements;

  constructor(address: PostgresAddress, link: PostgresLink, durable: boolean) {
    this.#link = link;
    this.#statements = statementsIn(address.schema);
    this.traits = { name: address.name, durable, ...kindTraits.postgres };
  }

  async read(register: string): Promise<StoreAnswer> {
    const [{ id, content }] = await this.#withMarker(this.#statements.read, [register]);
    return { kind: "cells", id, cells: content === null ? [] : [content as Uint8Array] };
  }

  async replace({ register, id, expected, next }: ReplaceRequest): Promise<StoreAnswer> {
    if (await this.#write(register, id, expected, next)) return { kind: "written", id };
    const seen = await this.read(register);
    return seen.kind === "cells" ? { ...seen, kind: "conflict" } : seen;
  }

  async list(prefix: string, registersMax: number): Promise<StoreAnswer> {
    const rows = await this.#withMarker(this.#statements.list, [prefix, registersMax]);
    const registers = new Map<string, readonly Uint8Array[]>();
    for (const { register, content } of rows)
      if (typeof register === "string") registers.set(register, [content as Uint8Array]);
    return { kind: "registers", id: rows[0].id, registers };
  }

  failure(error: unknown): LeaseholdError {
    return postgresFailure(this.traits.name, error);
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  async #write(
    register: string,
    id: string,
    expected: Uint8Array | undefined,
    next: Uint8Array,
  ): Promise<boolean> {
    const { create, replace } = this.#statements;
    const { rowCount } =
      expected === undefined
        ? await this.#link.query(create, [register, next, id])
        : await this.#link.query(replace, [register, next, id, expected]);
    return rowCount === 1;
  }

  /** Runs a statement whose rows all contain the marker; the marker is created if there is none. */
  async #withMarker(statement: string, values: readonly unknown[]): Promise<[MarkedRow, ...MarkedRow[]]> {
    for (let tries = 0; tries < markerTriesMax; tries += 1) {
      const { rows } = await this.#link.query(statement, values);
      const [first, ...others] = rows as MarkedRow[];
      if (first !== undefined && typeof first.id === "string") return [first, ...others];
      await this.#link.query(this.#statements.makeMarker, [drawMarker(false)]);
    }
    throw new LeaseholdError("STORE_UNAVAILABLE", `${this.traits.name}: its marker keeps disappearing`);
  }
}

interface MarkedRow extends Readonly<Record<string, unknown>> {
  readonly id: string;
}
