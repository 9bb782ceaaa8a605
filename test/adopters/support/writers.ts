import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { PatroniNode } from "./patroni.js";

/** A row that a node has acknowledged, with its timeline. */
interface Row {
  readonly id: string;
  readonly node: string;
  readonly timeline: number;
  readonly beganMs: number;
  readonly endedMs: number;
}

/**
 * Writes continuously to every node of a cluster, including those that should refuse, and records the
 * acknowledged rows.
 */
export class Writers {
  readonly rows: Row[] = [];
  readonly #ended = new AbortController();
  readonly #running: Promise<void>[];
  #count = 0;

  constructor(nodes: readonly PatroniNode[]) {
    this.#running = nodes.map((node) => this.#write(node));
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    await Promise.all(this.#running);
  }

  /** The longest time without an acknowledged row since this moment, in seconds. */
  longestGapS(sinceMs: number): number {
    const ends = this.rows.map(({ endedMs }) => endedMs).filter((ms) => ms >= sinceMs);
    const moments = [sinceMs, ...ends, performance.now()];
    return Math.max(...moments.slice(1).map((ms, index) => ms - moments[index]!)) / 1_000;
  }

  /** The last row since this moment. */
  last(sinceMs = 0): Row | undefined {
    return this.rows.findLast(({ beganMs }) => beganMs >= sinceMs);
  }

  /**
   * Rows that violate exclusion: acknowledged although they began after a later timeline's first row had
   * ended, or acknowledged by two nodes in one timeline.
   */
  doubleWrites(): Row[] {
    return this.rows.filter((row) =>
      this.rows.some(
        (other) =>
          (other.timeline === row.timeline && other.node !== row.node) ||
          (other.timeline > row.timeline && other.endedMs < row.beganMs),
      ),
    );
  }

  /** Acknowledged rows that this node does not have. */
  async lost(node: PatroniNode): Promise<string[]> {
    // Read first, since other rows are added during the query.
    const acknowledged = this.rows.map(({ id }) => id);
    const client = node.client();
    await client.connect();
    try {
      const { rows } = await client.query<{ id: string }>("select id from written");
      const there = new Set(rows.map(({ id }) => id));
      return acknowledged.filter((id) => !there.has(id));
    } finally {
      await client.end();
    }
  }

  async #write(node: PatroniNode): Promise<void> {
    let client: pg.Client | undefined;
    while (!this.#ended.signal.aborted) {
      const id = `${node.name}-${++this.#count}`;
      try {
        client ??= await connected(node);
        const beganMs = performance.now();
        const { rows } = await client.query<{ timeline: string }>(
          "insert into written (id) values ($1) returning substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline",
          [id],
        );
        const timeline = parseInt(rows[0]!.timeline, 16);
        this.rows.push({ id, node: node.name, timeline, beganMs, endedMs: performance.now() });
      } catch (error) {
        const isStandby = error instanceof Error && "code" in error && error.code === "25006";
        if (!isStandby) {
          void client?.end().catch(() => undefined);
          client = undefined;
        }
      }
      await sleep(100);
    }
    await client?.end().catch(() => undefined);
  }
}

async function connected(node: PatroniNode): Promise<pg.Client> {
  const client = node.client();
  // Ignored: a killed server ends its connections.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}
