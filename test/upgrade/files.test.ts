import { cpSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";
import { Program, testFolder } from "./programs.js";
import { formerFiles, formerRelease, hasHistory, releaseMsMax, releaseOf } from "./releases.js";

/**
 * Nodes of files are upgraded one by one and rolled back, while files are put and a counter is incremented.
 */

const ids = ["a", "b", "c"] as const;
const serveMsMax = 90_000;

class Nodes {
  readonly urls: readonly string[];
  readonly folder = testFolder();
  readonly #ports: readonly number[];
  readonly #processes = new Map<string, Program>();

  private constructor(ports: readonly number[]) {
    this.#ports = ports;
    this.urls = ids.map((_, index) => `http://127.0.0.1:${ports[index]}`);
  }

  static async start(dist: string): Promise<Nodes> {
    const nodes = new Nodes(await freePorts(3 * ids.length));
    await nodes.startAgain(dist);
    return nodes;
  }

  dir(id: string): string {
    return join(this.folder, id);
  }

  #start(id: string, dist: string): void {
    const at = (group: number, index: number) => `127.0.0.1:${this.#ports[group * ids.length + index]}`;
    const words = ["--id", id, "--dir", this.dir(id), "--http", at(0, ids.indexOf(id as "a"))];
    words.push("--ttl-max", "2500ms", "--max-clock-skew", "50ms");
    for (const [index, each] of ids.entries())
      words.push("--node", `${each}=${at(1, index)}`, "--member", `${each}=${at(2, index)}`);
    this.#processes.set(id, Program.leasehold(dist, "files", "serve", ...words));
  }

  async startAgain(dist: string): Promise<void> {
    for (const id of ids) this.#start(id, dist);
    await this.allServe();
  }

  async roll(dist: string, chosen: readonly string[] = ids): Promise<void> {
    for (const id of chosen) {
      await this.#processes.get(id)!.end();
      this.#start(id, dist);
      await this.allServe();
    }
  }

  async end(): Promise<void> {
    for (const id of ids) await this.#processes.get(id)!.end();
  }

  output(): string {
    return ids.map((id) => `${id}: ${this.#processes.get(id)!.output.slice(-2_000)}`).join("\n");
  }

  /** Waits until each node serves and every copy is complete. */
  async allServe(): Promise<void> {
    const endMs = performance.now() + serveMsMax;
    while ((await this.#whole().catch(() => 0)) < ids.length) {
      if (performance.now() > endMs) throw new Error(`not all serve: ${this.output()}`);
      await sleep(500);
    }
  }

  async #whole(): Promise<number> {
    const asked = Program.leasehold(dist, "files", "status", "-o", "json", "--nodes", this.urls.join());
    await asked.code();
    const found = JSON.parse(asked.output || "[]") as {
      status?: { state: string; peers: { behind: number | null }[] };
    }[];
    return found.filter(
      ({ status }) => status?.state === "serving" && status.peers.every(({ behind }) => behind === 0),
    ).length;
  }
}

/** Puts files and increments a number with conditional puts, at any node that answers. */
class Writers {
  readonly #nodes: Nodes;
  readonly #acknowledged = new Map<string, string>();
  readonly #over = new AbortController();
  readonly #running: Promise<unknown>[];
  #counted = 0;
  #uncertain = 0;

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
    this.#running = [this.#put("small", 300), this.#put("large", 300_000), this.#count(0), this.#count(1)];
  }

  async #ask(turn: number, path: string, init: RequestInit = {}): Promise<Response> {
    const url = this.#nodes.urls[turn % this.#nodes.urls.length]!;
    return fetch(`${url}/${path}`, { ...init, signal: AbortSignal.timeout(20_000) });
  }

  async #put(kind: string, bytes: number): Promise<void> {
    for (let turn = 0; !this.#over.signal.aborted; turn += 1) {
      const path = `${kind}-${turn % 50}`;
      const body = `${path} ${turn} `.padEnd(bytes, String(turn));
      const before = this.#acknowledged.get(path);
      // A put without an acknowledgement may or may not be stored.
      this.#acknowledged.delete(path);
      const answer = await this.#ask(turn, path, { method: "PUT", body }).catch(() => undefined);
      if (answer?.ok === true) this.#acknowledged.set(path, body);
      else if (answer !== undefined && answer.status < 500 && before !== undefined)
        this.#acknowledged.set(path, before);
      await sleep(20);
    }
  }

  async #count(first: number): Promise<void> {
    for (let turn = first; !this.#over.signal.aborted; turn += 1) {
      const read = await this.#ask(turn, "counter").catch(() => undefined);
      const isThere = read?.ok === true;
      if (!isThere && read?.status !== 404) {
        await sleep(50);
        continue;
      }
      const [etag, value] = [read.headers.get("etag"), isThere ? Number(await read.text()) : 0];
      const condition: Record<string, string> = isThere ? { "if-match": etag! } : { "if-none-match": "*" };
      const put = { method: "PUT", body: String(value + 1), headers: condition };
      const answer = await this.#ask(turn, "counter", put).catch(() => undefined);
      if (answer?.ok === true) this.#counted += 1;
      else if (answer?.status !== 412) this.#uncertain += 1;
      await sleep(20);
    }
  }

  /** Ends the writers, and compares the files with the acknowledged puts. */
  async end(): Promise<{ lost: string[]; files: number; counted: number; tooLow: number; tooHigh: number }> {
    this.#over.abort();
    await Promise.all(this.#running);
    const lost: string[] = [];
    for (const [path, body] of this.#acknowledged)
      for (const turn of ids.keys())
        if ((await (await this.#ask(turn, path)).text()) !== body) lost.push(`${path} at ${ids[turn]}`);
    const value = Number(await (await this.#ask(0, "counter")).text());
    return {
      lost,
      files: this.#acknowledged.size,
      counted: this.#counted,
      tooLow: Math.max(0, this.#counted - value),
      tooHigh: Math.max(0, value - this.#counted - this.#uncertain),
    };
  }
}

async function rollThereAndBack(before: string, after: string): ReturnType<Writers["end"]> {
  const nodes = await Nodes.start(before);
  const writers = new Writers(nodes);
  await nodes.roll(after, ["a", "b"]);
  await nodes.roll(before, ["b", "a"]);
  await nodes.roll(after);
  await nodes.roll(before);
  await nodes.roll(after);
  return writers.end();
}

test.runIf(hasHistory(formerFiles))(
  "nodes of the previous release are upgraded and rolled back with their disks, and nothing acknowledged is lost",
  async () => {
    const { lost, files, counted, tooLow, tooHigh } = await rollThereAndBack(releaseOf(formerFiles), dist);
    expect([lost, tooLow, tooHigh]).toEqual([[], 0, 0]);
    expect(files).toBeGreaterThan(60);
    expect(counted).toBeGreaterThan(50);
  },
  releaseMsMax,
);

describe.runIf(hasHistory(formerRelease))("a disk with another format", () => {
  test(
    "is refused by both releases, and is left unchanged",
    async () => {
      const older = releaseOf(formerRelease);
      const [present, former] = [await Nodes.start(dist), await Nodes.start(older)];
      const put = await fetch(`${former.urls[0]}/kept`, { method: "PUT", body: "kept" });
      expect(put.ok).toBe(true);
      await present.end();
      await former.end();
      const cases = [
        [dist, former],
        [older, present],
      ] as const;
      for (const [other, nodes] of cases) {
        cpSync(nodes.dir("a"), join(nodes.folder, "before"), { recursive: true });
        const words = [
          "--id",
          "a",
          "--dir",
          nodes.dir("a"),
          "--node",
          "a=127.0.0.1:1",
          "--member",
          "a=127.0.0.1:1",
        ];
        const refused = Program.leasehold(other, "files", "serve", ...words, "--http", "127.0.0.1:0");
        expect(await refused.code()).not.toBe(0);
        expect(refused.output).toContain("is of another version of Leasehold");
      }
      await former.startAgain(older);
      expect(await (await fetch(`${former.urls[1]}/kept`)).text()).toBe("kept");
    },
    releaseMsMax,
  );
});
