import type { Pool, QueryResult } from "pg";
import { loadPackage } from "../../runtime/optional-package.js";
import { operationMsMax } from "../common/server-limits.js";
import type { PostgresAddress } from "./address.js";
import { sqlStateOf } from "./failure.js";

/** Statements are short; more connections than this from each process would only take them from others. */
const connectionsMax = 4;

/** After this long without anything to do a connection is given back, ms. */
const idleMsMax = 30_000;

/**
 * Serialization failures and deadlocks. Where the default isolation is stricter than PostgreSQL's own, the
 * loser of a race gets one.
 */
const rolledBack = new Set(["40001", "40P01"]);

/** Each time another transaction came through; so many at once there are not. */
const triesMax = 30;

/** Longest random pause before a statement is repeated, ms: some times as long as a statement takes. */
const retryPauseMsMax = 20;

/** The connections to one PostgreSQL server. One that fails is replaced when it is needed. */
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
    // A connection that breaks while nobody uses it: the next statement takes another.
    pool.on("error", () => undefined);
    return new PostgresLink(pool);
  }

  /** Repeats what was rolled back only because it met another transaction. */
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
