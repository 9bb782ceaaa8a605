import { setTimeout as sleep } from "node:timers/promises";
import { FenceError, stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken } from "./token.js";

/** The part of a database of `node:sqlite` or of better-sqlite3 that is used. Both are synchronous. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    get(...values: (string | bigint)[]): unknown;
    run(...values: (string | bigint)[]): unknown;
  };
}

/** The table of a file's fences, for a migration. {@link SqliteFence.setUp} runs it, too. */
export const tableSql = `create table if not exists leasehold_fence (
  name text primary key,
  token integer not null
) without rowid`;

// As text: drivers return 64-bit integers rounded, or throw.
const greatestSql = "select cast(token as text) from leasehold_fence where name = ?";

const storeSql = `insert into leasehold_fence (name, token) values (?, ?)
on conflict (name) do update set token = excluded.token`;

/**
 * Checks a token before the write, in a transaction that the caller has begun. If it throws, roll back:
 * SQLite keeps the transaction open.
 *
 * @throws FenceError `TOKEN_STALE`: the fence has seen a greater token; `TOKEN_INVALID`: this is not a token
 */
export function checkInTransaction(database: SqliteDatabase, name: string, token: bigint): void {
  checkToken(token);
  const greatest = greatestIn(database, name);
  if (greatest > token) throw stale(name, token);
  if (greatest < token) database.prepare(storeSql).run(name, token);
}

function greatestIn(database: SqliteDatabase, name: string): bigint {
  return BigInt(String(valueOf(database, greatestSql, name) ?? 0));
}

export interface SqliteFenceOptions {
  /**
   * How long a write waits while others write to the file, in ms; default 5,000. After that it throws the
   * driver's error, SQLITE_BUSY. The program is not blocked while it waits.
   */
  readonly busyMs?: number;
}

/** Waits between two attempts to lock the file, ms. */
const waitMsMax = 50;

/** Ends the program's write: SQLite ends no savepoint before its transaction. */
const savepoint = "leasehold_fence";

/**
 * Rows in a file of SQLite that are written with a token. A write is a transaction that locks the file before
 * the check, which stores the token in the table `leasehold_fence`. The transaction begins and ends within
 * one turn of the program, so that no other statement gets into it.
 *
 * Requirement: a file on a local file system, with the fence's table and the written ones in it. A commit
 * also waits for readers, unless the file is in WAL mode; the connection's `busy_timeout` bounds that wait.
 * With `synchronous` below its default, a power failure may lose the last tokens together with their writes.
 *
 * A holder that is paused in the middle of its write blocks every writer until it continues or is killed:
 * SQLite has no timeout for that. The middle has no awaits, so it is short.
 */
export class SqliteFence<Database extends SqliteDatabase = SqliteDatabase> implements Fence<
  (database: Database) => unknown
> {
  readonly #database: Database;
  readonly #name: string;
  readonly #busyMs: number;

  /**
   * @param database an open database, also for the program's other statements
   * @param name the resource, for example the name of the lease
   */
  constructor(database: Database, name: string, { busyMs = 5_000 }: SqliteFenceOptions = {}) {
    if (!Number.isFinite(busyMs) || busyMs < 0)
      throw new RangeError(`busyMs is a number of milliseconds, not ${busyMs}`);
    this.#database = database;
    this.#name = name;
    this.#busyMs = busyMs;
  }

  /** Creates the table if it is missing. */
  async setUp(): Promise<void> {
    await this.#whenFree(() => this.#database.exec(tableSql));
  }

  /**
   * Runs `change` in a transaction with the check. If it throws, nothing is written, and its error is
   * rethrown.
   *
   * @param change must not be asynchronous, must send its statements through the given database, and must not
   *   end the transaction
   * @throws FenceError `TOKEN_STALE`; `TOKEN_INVALID`; `WRITE_UNDONE`: the transaction has ended during
   *   `change`, by its statements or by an error that it ignored. TypeError: `change` is asynchronous
   */
  async write<Result>(token: bigint, change: (database: Database) => Result): Promise<Result> {
    checkToken(token);
    // Not called at all: whatever follows its first `await` would be written without a transaction.
    if (change.constructor.name === "AsyncFunction") throw asynchronous();
    return this.#whenFree(
      () => this.#database.exec("begin immediate"),
      () => this.#writeBegun(token, change),
    );
  }

  async claim(token: bigint): Promise<void> {
    await this.write(token, () => undefined);
  }

  async greatest(): Promise<bigint> {
    return this.#whenFree(() => greatestIn(this.#database, this.#name));
  }

  #writeBegun<Result>(token: bigint, change: (database: Database) => Result): Result {
    const database = this.#database;
    try {
      checkInTransaction(database, this.#name, token);
      database.exec(`savepoint ${savepoint}`);
      const result = change(database);
      if (isPromise(result)) {
        // Its own failure is of no interest any more.
        result.then(undefined, () => undefined);
        throw asynchronous();
      }
      this.#endChange();
      database.exec("commit");
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #endChange(): void {
    try {
      this.#database.exec(`release ${savepoint}`);
    } catch (error) {
      throw new FenceError("WRITE_UNDONE", "the transaction has ended during the write", { cause: error });
    }
  }

  #rollBack(): void {
    try {
      this.#database.exec("rollback");
    } catch {
      // After some errors SQLite has already rolled back.
    }
  }

  /** Repeats `attempt` while the file is locked, and then calls `next` in the same turn. */
  async #whenFree<Begun, Result = Begun>(
    attempt: () => Begun,
    next: (begun: Begun) => Result = (begun) => begun as unknown as Result,
  ): Promise<Result> {
    const endMs = performance.now() + this.#busyMs;
    for (let waitMs = 1; ; waitMs = Math.min(2 * waitMs, waitMsMax)) {
      let begun: Begun;
      try {
        begun = this.#atOnce(attempt);
      } catch (error) {
        if (!isBusy(error) || performance.now() >= endMs) throw error;
        await sleep(waitMs);
        continue;
      }
      return next(begun);
    }
  }

  /** Runs it without the wait of `busy_timeout`, which would block the program and its leases. */
  #atOnce<Result>(attempt: () => Result): Result {
    const timeoutMs = Number(valueOf(this.#database, "pragma busy_timeout"));
    if (timeoutMs === 0) return attempt();
    this.#database.exec("pragma busy_timeout = 0");
    try {
      return attempt();
    } finally {
      this.#database.exec(`pragma busy_timeout = ${timeoutMs}`);
    }
  }
}

/** The first column of the first row. */
function valueOf(database: SqliteDatabase, sql: string, name?: string): unknown {
  const statement = database.prepare(sql);
  const row = (name === undefined ? statement.get() : statement.get(name)) as object | null | undefined;
  return row === null || row === undefined ? undefined : (Object.values(row)[0] as unknown);
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function asynchronous(): TypeError {
  return new TypeError(
    "the change of a SqliteFence must not be asynchronous: its transaction ends with the turn; nothing was written",
  );
}

/** The drivers pass on SQLite's code as a number or by its name. */
function isBusy(error: unknown): boolean {
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown };
  return (typeof errcode === "number" && (errcode & 0xff) === 5) || String(code).startsWith("SQLITE_BUSY");
}
