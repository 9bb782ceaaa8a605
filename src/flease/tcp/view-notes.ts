import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { isRecord } from "../../common/json.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { KeptView, Membership, View, ViewNote } from "../protocol/views.js";
import { stampMax, viewNumberMax, votersOf } from "../protocol/views.js";
import { cellSizeMax, membersMax } from "../protocol/settings.js";

/** A view as members tell it each other, clients and their files: with where the members are. */
export interface ToldView extends ViewNote {
  readonly addresses: Readonly<Record<string, string>>;
}

/** As JSON: maps are lists of pairs. */
export function writeToldView({ view, barrier, settled, addresses }: ToldView): object {
  return { view, barrier, settled: [...settled], addresses };
}

/**
 * Reads what another participant, or a file, says of a view.
 *
 * @throws LeaseholdError `CONFIG_MISMATCH` for what is no view.
 */
export function readToldView(told: unknown): ToldView {
  if (!isRecord(told)) return misfit();
  const { barrier, settled, addresses } = told;
  const view = readView(told["view"]);
  if (!isNumber(barrier) || !Array.isArray(settled) || !isRecord(addresses)) return misfit();
  const tops = settled.map((pair: unknown): [string, number] => {
    const [id, top] = Array.isArray(pair) ? (pair as unknown[]) : [];
    return typeof id === "string" && isNumber(top) ? [id, top] : misfit();
  });
  const known = Object.fromEntries(
    votersOf(view).map((id) => {
      const address = addresses[id];
      return typeof address === "string" ? [id, address] : misfit();
    }),
  );
  return { view, barrier, settled: new Map(tops), addresses: known };
}

function readView(value: unknown): View {
  if (!isRecord(value)) return misfit();
  const { number, stamp, before } = value;
  if (!isNumber(number) || number > viewNumberMax || !isNumber(stamp)) return misfit();
  // No other member can be in such a view, so this one is lost in it.
  if (stamp > stampMax)
    throw new LeaseholdError(
      "CONFIG_MISMATCH",
      `an early build wrote view ${number} with the stamp ${stamp}, which no message can carry, when this member began a change: put a member with another id in its place (leasehold member replace)`,
    );
  const former = before === undefined ? undefined : readMembership(before);
  return { number, stamp, ...readMembership(value), before: former };
}

function readMembership(value: unknown): Membership {
  if (!isRecord(value)) return misfit();
  const { members, cellSize } = value;
  if (!Array.isArray(members) || members.length === 0 || members.length > membersMax) return misfit();
  const ids = members.filter(
    (id): id is string => typeof id === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(id),
  );
  const most = Math.min(members.length, cellSizeMax);
  if (ids.length < members.length || !isNumber(cellSize) || cellSize < 1 || cellSize > most) return misfit();
  return { members: [...new Set(ids)].sort(), cellSize };
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function misfit(): never {
  throw new LeaseholdError("CONFIG_MISMATCH", "what was told of a view of the cluster is no view");
}

/** Where a member keeps its view, so that a restart does not take it back to an older one. */
export class ViewFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * What was kept; `undefined` where there is no file yet.
   *
   * @throws LeaseholdError `INVALID_CONFIG` for a file that cannot be read, or holds something else: without
   * it the member might go back to an older view.
   */
  read(): (KeptView & Pick<ToldView, "addresses">) | undefined {
    try {
      return readToldView(JSON.parse(readFileSync(this.#path, "utf8")));
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      const text = `the file of this member's view, ${this.#path}, cannot be read`;
      throw new LeaseholdError("INVALID_CONFIG", `${text}: ${(cause as Error).message}`, { cause });
    }
  }

  /** Writes it and waits for the disk: the view must not count before. Throws what the file system says. */
  write(told: ToldView): void {
    const next = `${this.#path}.new`;
    const file = openSync(next, "w", 0o600);
    try {
      writeSync(file, JSON.stringify(writeToldView(told)));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, this.#path);
    const folder = openSync(dirname(this.#path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}
