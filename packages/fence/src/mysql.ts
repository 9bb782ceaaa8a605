import { FenceError, hasCause, stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken } from "./token.js";

/** The part of a connection of `mysql2`, by its promises, that is used. */
export interface MysqlClient {
  /** @returns the rows, and what else the driver knows */
  query(text: string, values?: unknown[]): Promise<[unknown, unknown]>;
}

/** The part of a pool of the same driver that is used. */
export interface MysqlPool<Client extends MysqlClient = MysqlClient> {
  getConnection(): Promise<Client & { release(): void; destroy(): void }>;
}

/**
 * The table of a database's fences, for a migration. {@link MysqlFence.setUp} runs it, too.
 *
 * Names are bytes: with a collation, names that differ in case or in spaces at the end would be equal.
 */
export const tableSql = `create table if not exists leasehold_fence (
  name varbinary(512) primary key,
  token bigint not null
) engine = innodb`;

/** The longest name, in bytes of UTF-8. */
const nameBytesMax = 512;

/** More than every integer type holds after an addition. */
const overflow = "18446744073709551615";

/**
 * The check as one statement, for any driver. The first `?` is the name of the resource and the second the
 * token. Run it before the write, in the same transaction. It fails if the fence has seen a greater token
 * ({@link isStale}). The transaction must then be rolled back: MySQL keeps it open. Otherwise the row stays
 * locked until the transaction ends, so no greater token comes between the check and the write.
 */
// A refusal is an overflow: an error in each version and with each `sql_mode`, unlike a constraint.
export const checkSql = `insert into leasehold_fence (name, token) values (?, ?)
on duplicate key update token = if(values(token) >= token, values(token), token + ${overflow})`;

/** Whether an error, or one of its causes, is the refusal of {@link checkSql}. */
export function isStale(error: unknown): boolean {
  // The server's message has the expression, in every language.
  return hasCause(
    error,
    ({ message }) => message.includes("leasehold_fence") && message.includes(`+ ${overflow}`),
  );
}

/**
 * Checks a token before the write, in a transaction that the caller has begun. If it throws, roll back.
 *
 * @throws FenceError `TOKEN_STALE`: the fence has seen a greater token; `TOKEN_INVALID`: this is not a token
 */
export async function checkInTransaction(client: MysqlClient, name: string, token: bigint): Promise<void> {
  checkToken(token);
  try {
    await client.query(checkSql, [name, String(token)]);
  } catch (error) {
    throw isStale(error) ? stale(name, token, error) : error;
  }
}

export interface MysqlFenceOptions {
  /**
   * How long a transaction may be idle while its program does something else, in seconds; default 10. A
   * holder that is paused in the middle of its write blocks its successor for this time. The server then
   * closes the connection, which rolls the transaction back.
   */
  readonly idleSeconds?: number;
}

/** The errors that the fence handles, by the server's numbers. */
const [deadlock, noSavepoint] = [1213, 1305];

/** A deadlock of the check ends when one of the others has its lock. */
const triesMax = 10;

/** Ends the program's write: no server ends a savepoint before its transaction. */
const savepoint = "leasehold_fence";

const restoreSql = "set autocommit = @leasehold_autocommit, wait_timeout = @leasehold_wait";

/**
 * Rows in MySQL or MariaDB that are written with a token. A write is a transaction. Its first statement
 * checks the token and stores it in a row of the table `leasehold_fence`.
 *
 * The fence holds in every isolation level. The written tables must be InnoDB: others keep what a transaction
 * has written when it is rolled back. One server takes all writes: neither Galera nor Group Replication may
 * have several writers. That server must keep what it has committed (`innodb_flush_log_at_trx_commit = 1`);
 * after a failover to an asynchronous replica the last tokens may be lost together with their writes. A write
 * waits for a concurrent write with another token, up to `innodb_lock_wait_timeout`.
 */
export class MysqlFence<Client extends MysqlClient = MysqlClient> implements Fence<
  (client: Client) => Promise<unknown>
> {
  readonly #pool: MysqlPool<Client>;
  readonly #name: string;
  readonly #begin: string;

  /** @param name the resource, for example the name of the lease; at most 512 bytes */
  constructor(pool: MysqlPool<Client>, name: string, { idleSeconds = 10 }: MysqlFenceOptions = {}) {
    if (!Number.isInteger(idleSeconds) || idleSeconds < 1 || idleSeconds > 31_536_000)
      throw new RangeError(`idleSeconds is a whole number of seconds from 1, not ${idleSeconds}`);
    if (new TextEncoder().encode(name).length > nameBytesMax)
      throw new RangeError(`a fence's name has at most ${nameBytesMax} bytes`);
    this.#pool = pool;
    this.#name = name;
    // `wait_timeout` is there in both servers; only MariaDB has a timeout of transactions. Without
    // autocommit, statements after an unexpected end of the transaction are in another one, which can be
    // rolled back.
    this.#begin =
      "set @leasehold_autocommit = @@autocommit, @leasehold_wait = @@wait_timeout, " +
      `autocommit = 0, wait_timeout = least(@@wait_timeout, ${idleSeconds})`;
  }

  /**
   * Creates the table if it is missing.
   *
   * @throws FenceError `RESOURCE_UNFIT`: the table has no transactions
   */
  async setUp(): Promise<void> {
    const client = await this.#pool.getConnection();
    try {
      await client.query(tableSql);
      const engine = await valueOf(
        client,
        "select engine from information_schema.tables where table_schema = database() and table_name = 'leasehold_fence'",
      );
      if (engine !== "InnoDB")
        throw new FenceError("RESOURCE_UNFIT", `the table leasehold_fence is of ${engine}, not of InnoDB`);
    } finally {
      client.release();
    }
  }

  /**
   * Runs `change` in a transaction with the check. If it throws, nothing is written, and its error is
   * rethrown.
   *
   * @param change must send its statements through the given client, and must not end the transaction. DDL
   *   does that, too
   * @throws FenceError `TOKEN_STALE`; `TOKEN_INVALID`; `WRITE_UNDONE`: the transaction has ended during
   *   `change`, by its statements or by a deadlock that it ignored, and what came after was rolled back.
   *   After a connection error it is unknown whether the transaction committed
   */
  async write<Result>(token: bigint, change: (client: Client) => Promise<Result>): Promise<Result> {
    checkToken(token);
    const client = await this.#pool.getConnection();
    let isClean = false;
    try {
      await client.query(this.#begin);
      try {
        await this.#check(client, token);
        await client.query(`savepoint ${savepoint}`);
        const result = await change(client);
        await this.#endChange(client);
        await client.query("commit");
        isClean = true;
        return result;
      } finally {
        // Setting autocommit would commit what is open.
        isClean ||= await succeeds(client.query("rollback"));
        isClean &&= await succeeds(client.query(restoreSql));
      }
    } finally {
      // A connection with an open transaction must not return to the pool.
      if (isClean) client.release();
      else client.destroy();
    }
  }

  async claim(token: bigint): Promise<void> {
    await this.write(token, async () => undefined);
  }

  async greatest(): Promise<bigint> {
    const client = await this.#pool.getConnection();
    try {
      // As text: the driver returns 64-bit integers in several ways.
      const sql = "select cast(token as char) from leasehold_fence where name = ?";
      return BigInt(String((await valueOf(client, sql, [this.#name])) ?? 0));
    } finally {
      client.release();
    }
  }

  /** A deadlock rolls back the transaction, which contains nothing but the check. */
  async #check(client: Client, token: bigint): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await checkInTransaction(client, this.#name, token);
      } catch (error) {
        if (numberOf(error) !== deadlock || tries === triesMax) throw error;
      }
    }
  }

  async #endChange(client: Client): Promise<void> {
    try {
      await client.query(`release savepoint ${savepoint}`);
    } catch (error) {
      if (numberOf(error) !== noSavepoint) throw error;
      const message = "the transaction has ended during the write; what came after was rolled back";
      throw new FenceError("WRITE_UNDONE", message, { cause: error });
    }
  }
}

/** The first column of the first row. */
async function valueOf(client: MysqlClient, sql: string, values: unknown[] = []): Promise<unknown> {
  const [rows] = await client.query(sql, values);
  // A row is an object or, by an option of the driver, an array.
  const [row] = rows as object[];
  return row === undefined ? undefined : (Object.values(row)[0] as unknown);
}

function numberOf(error: unknown): unknown {
  return error instanceof Error && "errno" in error ? error.errno : undefined;
}

async function succeeds(answer: Promise<unknown>): Promise<boolean> {
  return answer.then(
    () => true,
    () => false,
  );
}
