import { setTimeout as sleep } from "node:timers/promises";
import type { Scraped } from "../support.js";

/** Long, for busy machines. An alert that takes longer to fire or to end is broken. */
const waitMs = 400_000;

export interface Trouble {
  /** The alerts that must fire, with further label matchers: `{ LeaseLost: 'reason="expired"' }`. */
  readonly alerts: Readonly<Record<string, string>>;
  /** The cause and the resolution, for the table. */
  readonly made: string;
  readonly ended: string;
  make(): unknown;
  /** Checks that the runbook's diagnosis shows the cause. */
  look?(): unknown;
  /** Performs the runbook's remedy. */
  mend(): unknown;
}

/** Troubles that a real Prometheus observes from beginning to end. */
export class Troubles {
  readonly scraped: Scraped;
  readonly seen = new Set<string>();
  readonly failures: string[] = [];

  constructor(scraped: Scraped) {
    this.scraped = scraped;
  }

  /**
   * Causes the trouble, waits until its alerts fire, diagnoses, remedies, and waits until the alerts have
   * ended. Failures are collected, so that the next trouble is tried, too.
   */
  async happen(trouble: Trouble): Promise<void> {
    try {
      await this.#seen(trouble);
    } catch (error) {
      this.failures.push(String(error));
      process.stdout.write(`${error}\n`);
    }
  }

  async #seen({ alerts, made, ended, make, look, mend }: Trouble): Promise<void> {
    const each = <Result>(work: (name: string, query: string) => Promise<Result>): Promise<Result[]> =>
      Promise.all(
        Object.entries(alerts).map(([name, labels]) =>
          work(name, `ALERTS{alertname="${name}",alertstate="firing",${labels}}`),
        ),
      );
    await each((name, query) => this.#until(`${name} is quiet before`, query, false));
    await make();
    let firedS;
    try {
      firedS = await each((name, query) => this.#until(`${name} fires: ${made}`, query, true));
      await look?.();
    } finally {
      await mend();
    }
    const endedS = await each((name, query) => this.#until(`${name} ends: ${ended}`, query, false));
    for (const [index, name] of Object.keys(alerts).entries()) {
      this.seen.add(name);
      process.stdout.write(`| ${name} | ${made} | ${firedS[index]} s | ${ended}, ${endedS[index]} s |\n`);
    }
  }

  async #until(what: string, query: string, isFiring: boolean): Promise<number> {
    const beginMs = performance.now();
    for (;;) {
      const tookMs = performance.now() - beginMs;
      if ((await this.scraped.values(query)).length > 0 === isFiring) return Math.round(tookMs / 1_000);
      if (tookMs > waitMs) {
        const firing = await this.scraped.labels('ALERTS{alertstate="firing"}');
        throw new Error(`not seen within ${waitMs / 1_000} s: ${what}; firing: ${JSON.stringify(firing)}`);
      }
      await sleep(300);
    }
  }
}

/** Repeats the work until the returned function is called. */
export function repeatedly(work: (signal: AbortSignal) => Promise<unknown>): () => Promise<void> {
  const over = new AbortController();
  const loop = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await work(over.signal).catch(() => undefined);
      await sleep(50);
    }
  };
  const ended = loop();
  return async () => {
    over.abort();
    await ended;
  };
}
