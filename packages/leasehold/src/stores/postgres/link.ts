import type { Pool, QueryResult } from "pg";
import { loadPackage } from "../../runtime/optional-package.js";
import { operationMsMax } from "../common/server-limits.js";
import type { PostgresAddress } from "./address.js";
import { sqlStateOf } from "./failure.js";

/**
 * The maximum number of connections. Statements are short, so more would only take connections from other
 * processes.
 */
const connectionsMax = 4;

/** Idle connections are closed after this time, ms. */
const idleMsMax = 30_000;

/**
 * Serialization failures and deadlocks. The loser of a race gets one if the default isolation is stricter
 * than PostgreSQL's own.
 */
const rolledBack = new Set(["40001", "40P01"]);

/**
 * The maximum number of retries of a statement. Each retry means that another transaction succeeded, and
 * fewer than this are concurrent.
 */
const triesMax = 30;

/** The bound of the random pause before a retry, ms: a few times the duration of a statement. */
const retryPauseMsMax = 20;

/** The connections to one PostgreSQL server. A failed one is replaced on demand. */
export class PostgresLink {
  readonly #pool: Pool;

  private constructor(pool: Pool) {
    this.#pool = pool;
  }

  static async open(address: PostgresAddress): Promise<PostgresLink> {
    const { default: pg } = await loadPackage<typeof import("pg")>("pg", "a store on PostgreSQL");
    const pool = new pg.Pool({
      connectionString: address.connectionString,
      application_name: "leasehold",
      max: connectionsMax,
      connectionTimeoutMillis: operationMsMax,
      query_timeout: operationMsMax,
      idleTimeoutMillis: idleMsMax,
      allowExitOnIdle: true,
      keepAlive: true,
    });
    // An idle connection broke. The next statement uses another.
    pool.on("error", () => undefined);
    return new PostgresLink(pool);
  }

  /** Retries a statement that was rolled back only because of another transaction. */
  async query(
    statement: string,
    values: readonly unknown[] = [],
  ): Promise<QueryResult<Record<string, unknown>>> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#pool.query<Record<string, unknown>>(statement, [...values]);
      } catch (error) {
        if (tries === triesMax || !rolledBack.has(sqlStateOf(error))) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, Math.random() * retryPauseMsMax));
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}
