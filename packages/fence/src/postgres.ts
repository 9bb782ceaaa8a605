import { FenceError, stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken } from "./token.js";

/** The part of a client of `pg` that is used. Any client that has the method will do. */
export interface PostgresClient {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly command?: string; readonly rows: readonly object[] }>;
  on?(event: "error", listener: (error: Error) => void): unknown;
  removeListener?(event: "error", listener: (error: Error) => void): unknown;
}

/** The part of a `pg.Pool` that is used. */
export interface PostgresPool<Client extends PostgresClient = PostgresClient> {
  connect(): Promise<Client & { release(error?: Error | boolean): void }>;
}

/** The constraint that a stale token violates: its name is in the message of every driver. */
const constraint = "leasehold_token_not_stale";

/**
 * The table of the fences of a database. For a migration; {@link PostgresFence.setUp} runs it, too.
 *
 * Rows are small and often updated: half of each page stays free for that.
 */
export const tableSql = `create table if not exists leasehold_fence (
  name text primary key,
  token bigint not null constraint ${constraint} check (token >= 0)
) with (fillfactor = 50)`;

/**
 * The check as one statement, for every driver: `$1` is the name of the resource and `$2` the token, each
 * once and in this order. Run it in the transaction of the write, before the write. It fails if a greater
 * token has been here ({@link isStale}), and PostgreSQL then commits nothing of the transaction. Otherwise
 * the row stays locked until the transaction ends, so no greater token comes between the check and the
 * write.
 */
// A refusal is a violated constraint and not an empty result: nobody has to look at the result, or can
// forget to.
export const checkSql = `insert into leasehold_fence as fence (name, token) values ($1, $2)
on conflict (name) do update set token =
  case when excluded.token >= fence.token then excluded.token else -1 end`;

/** Whether an error, or one that it was made of, is the refusal of {@link checkSql}. */
export function isStale(error: unknown): boolean {
  let cause = error;
  // Drivers wrap an error once or twice; a circle of causes ends here, too.
  for (let depth = 0; depth < 8 && cause instanceof Error; depth++) {
    if (cause.message.includes(constraint)) return true;
    cause = cause.cause;
  }
  return false;
}

/**
 * Checks a token in a transaction that you have begun, before the write. Roll back if it throws; PostgreSQL
 * refuses to commit then.
 *
 * @throws FenceError `TOKEN_STALE`: a greater token has been here; `TOKEN_INVALID`: this is no token
 */
export async function checkInTransaction(client: PostgresClient, name: string, token: bigint): Promise<void> {
  checkToken(token);
  try {
    await client.query(checkSql, [name, String(token)]);
  } catch (error) {
    throw isStale(error) ? stale(name, token, error) : error;
  }
}

export interface PostgresFenceOptions {
  /**
   * How long a transaction may wait for its program, ms; default 10,000. A holder that is paused in the
   * middle of its write blocks its successor for so long, and then PostgreSQL rolls its transaction back.
   */
  readonly idleMs?: number;
}

/**
 * A resource in PostgreSQL: the rows that are written with its token. A write is a transaction, whose first
 * statement checks the token and keeps it in a row of the table `leasehold_fence`.
 *
 * It holds in every isolation level (in the stricter ones a write may fail with a serialization error, and
 * be tried again), through poolers of transactions, and as long as the server keeps what it has committed:
 * with `synchronous_commit = off`, or after a failover to an asynchronous standby, the last tokens may be
 * forgotten, with their writes. A write waits for one with another token; the role's `lock_timeout` bounds
 * that.
 */
export class PostgresFence<Client extends PostgresClient = PostgresClient> implements Fence<
  (client: Client) => Promise<unknown>
> {
  readonly #pool: PostgresPool<Client>;
  readonly #name: string;
  readonly #begin: string;

  /** @param name the resource, for example that of the lease */
  constructor(pool: PostgresPool<Client>, name: string, { idleMs = 10_000 }: PostgresFenceOptions = {}) {
    if (!Number.isInteger(idleMs) || idleMs < 1 || idleMs > 2_147_483_647)
      throw new RangeError(`idleMs is a whole number of milliseconds from 1, not ${idleMs}`);
    this.#pool = pool;
    this.#name = name;
    // Both in one round trip.
    this.#begin = `begin; set local idle_in_transaction_session_timeout = ${idleMs}`;
  }

  /** Creates the table where it is missing. */
  async setUp(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query(tableSql);
    } catch (error) {
      // Two that create it at once: one of them fails, and the table is there.
      if (!isDuplicate(error)) throw error;
    } finally {
      client.release();
    }
  }

  /**
   * Runs `change` in a transaction with the check. If it throws, nothing is written, and its error is
   * rethrown.
   *
   * @param change its statements go through the client that it is given, and none of them ends the
   *   transaction
   * @throws FenceError `TOKEN_STALE`; `TOKEN_INVALID`; `WRITE_UNDONE` if `change` passed over an error of a
   *   statement. An error of the connection leaves it open whether a commit took place
   */
  async write<Result>(token: bigint, change: (client: Client) => Promise<Result>): Promise<Result> {
    checkToken(token);
    const client = await this.#pool.connect();
    let failure: unknown;
    // A connection that ends between two statements, as that of a holder that was stopped: without a
    // listener the event would end the process. The next statement fails.
    const noted = (error: Error) => void (failure = error);
    client.on?.("error", noted);
    try {
      await client.query(this.#begin);
      await checkInTransaction(client, this.#name, token);
      const result = await change(client);
      const { command } = await client.query("commit");
      if (command === "ROLLBACK") throw new FenceError("WRITE_UNDONE");
      return result;
    } catch (error) {
      // A connection that cannot roll back must not go back into the pool with an open transaction.
      await client.query("rollback").catch((broken: unknown) => (failure = broken));
      throw error;
    } finally {
      client.removeListener?.("error", noted);
      client.release(failure !== undefined);
    }
  }

  async claim(token: bigint): Promise<void> {
    await this.write(token, async () => undefined);
  }

  async greatest(): Promise<bigint> {
    const client = await this.#pool.connect();
    try {
      // As text: a program may have its own parser for numbers of 64 bits.
      const { rows } = await client.query(
        "select token::text as token from leasehold_fence where name = $1",
        [this.#name],
      );
      const [row] = rows;
      return row !== undefined && "token" in row ? BigInt(String(row.token)) : 0n;
    } finally {
      client.release();
    }
  }
}

function isDuplicate(error: unknown): boolean {
  return error instanceof Error && "code" in error && ["23505", "42P07"].includes(String(error.code));
}
