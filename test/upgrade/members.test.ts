import { expect, test } from "vitest";
import { clusterStatus } from "leasehold";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";
import { Holders, Program, testFolder } from "./programs.js";
import { formerRelease, hasHistory, releaseMsMax, releaseOf } from "./releases.js";

/** Members are upgraded one by one and rolled back, while clients of both releases acquire leases. */

const ids = ["a", "b", "c"] as const;
const ttlMs = 4_000;
const readyMsMax = 120_000;

class Members {
  readonly endpoints: readonly string[];
  readonly #folder: string;
  readonly #processes = new Map<string, Program>();

  private constructor(folder: string, endpoints: readonly string[]) {
    this.#folder = folder;
    this.endpoints = endpoints;
  }

  static async start(folder: string, dist: string): Promise<Members> {
    const ports = await freePorts(ids.length);
    const members = new Members(
      folder,
      ports.map((port) => `127.0.0.1:${port}`),
    );
    for (const id of ids) members.#start(id, dist);
    await members.allReady();
    return members;
  }

  /** The client address of each member. */
  get addresses(): [string, ...string[]] {
    const [first = "", ...others] = this.endpoints.map((endpoint) => `flease://${endpoint}`);
    return [first, ...others];
  }

  /** The end of each output, for error messages. */
  #lastWords(): readonly string[] {
    return [...this.#processes].map(([id, { output }]) => `${id}: ${output.slice(-500)}`);
  }

  output(id: string): string {
    return this.#processes.get(id)!.output;
  }

  #start(id: string, dist: string): void {
    const words = ["peer", "--id", id, "--views-file", join(this.#folder, `${id}.views`)];
    words.push("--initial-cluster-state", "new", "--ttl-max", `${ttlMs}ms`, "--max-clock-skew", "300ms");
    for (const [index, each] of ids.entries()) words.push("--member", `${each}=${this.endpoints[index]}`);
    this.#processes.set(id, Program.leasehold(dist, ...words));
  }

  /** Restarts the members one by one with this build, each when all are ready. */
  async roll(dist: string, chosen: readonly string[] = ids): Promise<void> {
    for (const id of chosen) {
      await this.#processes.get(id)!.end();
      this.#start(id, dist);
      await this.allReady();
    }
  }

  async allReady(): Promise<void> {
    const endMs = performance.now() + readyMsMax;
    for (;;) {
      const reports = await clusterStatus(...this.addresses).catch(() => []);
      const states = reports.map((each) => [each.id, each.reachable ? each.status.state : each.reason]);
      if (states.length === ids.length && states.every(([, state]) => state === "ready")) return;
      if (performance.now() > endMs)
        throw new Error(`not all are ready: ${JSON.stringify([states, this.#lastWords()])}`);
      await sleep(200);
    }
  }
}

async function rollThereAndBack(before: string, after: string): Promise<Members> {
  const folder = testFolder();
  const members = await Members.start(folder, before);
  const holders = new Holders(members.addresses.join(" "), folder, ttlMs);
  await holders.start("before", before);
  await holders.start("after", after);
  // Roll back from half way, and from the complete upgrade.
  await members.roll(after, ["a", "b"]);
  await members.roll(before, ["b"]);
  await members.roll(after, ["b", "c"]);
  await holders.start("later", before);
  await members.roll(before, ["a", "c"]);
  await holders.endAll();
  return members;
}

test.runIf(hasHistory(formerRelease))(
  "members of the previous release are upgraded and rolled back, and no lease is lost or has two holders",
  async () => {
    const members = await rollThereAndBack(releaseOf(formerRelease), dist);
    // A refused version is not offered again, so no client sees the error.
    expect(ids.map((id) => members.output(id)).join("")).not.toContain("VERSION_MISMATCH");
  },
  releaseMsMax,
);
