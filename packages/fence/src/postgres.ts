import { FenceError, hasCause, stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken } from "./token.js";

/** The part of a client of `pg` that is used. Any client with this method will do. */
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

/** The constraint that a stale token violates. Every driver's message contains its name. */
const constraint = "leasehold_token_not_stale";

/**
 * The table of a database's fences, for a migration. {@link PostgresFence.setUp} runs it, too.
 *
 * Rows are small and updated often, so half of each page stays free.
 */
export const tableSql = `create table if not exists leasehold_fence (
  name text primary key,
  token bigint not null constraint ${constraint} check (token >= 0)
) with (fillfactor = 50)`;

/**
 * The check as one statement, for any driver. `$1` is the name of the resource and `$2` the token; each
 * appears once, in this order. Run it before the write, in the same transaction. It fails if the fence has
 * seen a greater token ({@link isStale}), and PostgreSQL then commits nothing of the transaction. Otherwise
 * the row stays locked until the transaction ends, so no greater token comes between the check and the write.
 */
// A refusal violates a constraint, so it raises an error. An empty result could be overlooked.
export const checkSql = `insert into leasehold_fence as fence (name, token) values ($1, $2)
on conflict (name) do update set token =
  case when excluded.token >= fence.token then excluded.token else -1 end`;

/** Whether an error, or one of its causes, is the refusal of {@link checkSql}. */
export function isStale(error: unknown): boolean {
  return hasCause(error, ({ message }) => message.includes(constraint));
}

/**
 * Checks a token before the write, in a transaction that the caller has begun. If it throws, roll back:
 * PostgreSQL refuses to commit.
 *
 * @throws FenceError `TOKEN_STALE`: the fence has seen a greater token; `TOKEN_INVALID`: this is not a token
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
   * How long a transaction may be idle while its program does something else, in ms; default 10,000. A holder
   * that is paused in the middle of its write blocks its successor for this time. PostgreSQL then rolls the
   * transaction back.
   */
  readonly idleMs?: number;
}

/**
 * Rows in PostgreSQL that are written with a token. A write is a transaction. Its first statement checks the
 * token and stores it in a row of the table `leasehold_fence`.
 *
 * The fence holds in every isolation level and behind transaction poolers. In the stricter levels a write may
 * fail with a serialization error; retry it. It also requires that the server keeps what it has committed:
 * with `synchronous_commit = off`, or after a failover to an asynchronous standby, the last tokens may be
 * lost together with their writes. A write waits for a concurrent write with another token; the role's
 * `lock_timeout` bounds that wait.
 */
export class PostgresFence<Client extends PostgresClient = PostgresClient> implements Fence<
  (client: Client) => Promise<unknown>
> {
  readonly #pool: PostgresPool<Client>;
  readonly #name: string;
  readonly #begin: string;

  /** @param name the resource, for example the name of the lease */
  constructor(pool: PostgresPool<Client>, name: string, { idleMs = 10_000 }: PostgresFenceOptions = {}) {
    if (!Number.isInteger(idleMs) || idleMs < 1 || idleMs > 2_147_483_647)
      throw new RangeError(`idleMs is a whole number of milliseconds from 1, not ${idleMs}`);
    this.#pool = pool;
    this.#name = name;
    // Both statements take one round trip.
    this.#begin = `begin; set local idle_in_transaction_session_timeout = ${idleMs}`;
  }

  /** Creates the table if it is missing. */
  async setUp(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query(tableSql);
    } catch (error) {
      // When two callers create the table at once, one of them fails, and the table exists.
      if (!isDuplicate(error)) throw error;
    } finally {
      client.release();
    }
  }

  /**
   * Runs `change` in a transaction with the check. If it throws, nothing is written, and its error is
   * rethrown.
   *
   * @param change must send its statements through the given client, and must not end the transaction
   * @throws FenceError `TOKEN_STALE`; `TOKEN_INVALID`; `WRITE_UNDONE` if `change` ignored the error of a
   *   statement. After a connection error it is unknown whether the transaction committed
   */
  async write<Result>(token: bigint, change: (client: Client) => Promise<Result>): Promise<Result> {
    checkToken(token);
    const client = await this.#pool.connect();
    let failure: unknown;
    // The connection may end between two statements, as when the server has timed out a paused holder.
    // Without a listener the `error` event would crash the process. The next statement fails instead.
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
      // A connection that cannot roll back must not return to the pool with an open transaction.
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
      // As text: the program may have set its own parser for 64-bit integers.
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
