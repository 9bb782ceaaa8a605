import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { dist } from "../support/built.js";

export const rules = fileURLToPath(new URL("../../deploy/prometheus/leasehold.rules.yml", import.meta.url));

/** Long, for very busy machines. */
const waitMs = 150_000;

interface Answer {
  readonly data: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value: readonly [number, string];
    }[];
  };
}

export const isPrometheusMissing = spawnSync("prometheus", ["--version"]).status !== 0;

/** Processes in a temporary folder, and a real Prometheus that scrapes them every second. */
export class Scraped implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "leasehold-prometheus-"));
  readonly #children: ChildProcess[] = [];
  #prometheus = "";

  start(command: string, ...words: string[]): ChildProcess {
    return this.startWith({}, command, ...words);
  }

  /** Starts a process with additional environment variables. */
  startWith(env: NodeJS.ProcessEnv, command: string, ...words: string[]): ChildProcess {
    const child = spawn(command, words, {
      cwd: this.folder,
      stdio: "ignore",
      env: { ...process.env, ...env },
    });
    this.#children.push(child);
    return child;
  }

  leasehold(...words: readonly (readonly string[])[]): ChildProcess {
    return this.start(process.execPath, join(dist, "cli/main.js"), ...words.flat());
  }

  /** Starts Prometheus with these targets, as `host:port`. */
  scrape(prometheus: string, targets: readonly string[]): void {
    this.scrapeJobs(prometheus, { leasehold: targets }, rules);
  }

  /** Starts Prometheus with the targets of each job and the rules in that file. */
  scrapeJobs(prometheus: string, jobs: Readonly<Record<string, readonly string[]>>, ruleFile: string): void {
    this.#prometheus = prometheus;
    const scrapeConfigs = Object.entries(jobs).map(([job, targets]) => ({
      job_name: job,
      static_configs: [{ targets }],
    }));
    writeFileSync(
      join(this.folder, "prometheus.yml"),
      [
        "global: { scrape_interval: 1s, evaluation_interval: 1s }",
        `rule_files: [${JSON.stringify(ruleFile)}]`,
        `scrape_configs: ${JSON.stringify(scrapeConfigs)}`,
        "",
      ].join("\n"),
    );
    this.start(
      "prometheus",
      "--config.file=prometheus.yml",
      `--web.listen-address=${prometheus}`,
      `--storage.tsdb.path=${this.folder}/data`,
    );
  }

  /** The values of all matching series; none while Prometheus doesn't answer. */
  async values(query: string): Promise<number[]> {
    return (await this.#asked(query)).map(({ value }) => Number(value[1]));
  }

  /** The labels of all matching series. */
  async labels(query: string): Promise<Readonly<Record<string, string>>[]> {
    return (await this.#asked(query)).map(({ metric }) => metric);
  }

  async #asked(query: string): Promise<Answer["data"]["result"]> {
    const url = `http://${this.#prometheus}/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = await fetch(url).catch(() => undefined);
    if (answer === undefined) return [];
    if (answer.status === 400) throw new Error(`${query}: ${await answer.text()}`);
    if (!answer.ok) return [];
    const { data } = (await answer.json()) as Answer;
    return data.result;
  }

  /**
   * Waits until the first value is the wanted one, and returns it. After some time, returns the last value
   * instead.
   */
  async settled(query: string, wanted: number): Promise<number | undefined> {
    for (const endMs = performance.now() + waitMs; ;) {
      const [value] = await this.values(query);
      if (value === wanted || performance.now() > endMs) return value;
      await sleep(500);
    }
  }

  /** Whether any matching series has a number within some time. */
  async hasNumbers(query: string): Promise<boolean> {
    for (const endMs = performance.now() + waitMs; ;) {
      if ((await this.values(query)).some((value) => Number.isFinite(value))) return true;
      if (performance.now() > endMs) return false;
      await sleep(500);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
