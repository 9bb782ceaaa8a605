import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { type Running, childrenOf, eventually, isAlive, leasehold } from "../support/built.js";
import { report } from "./arena.js";

/** The output of `npm start`, for as long as a newcomer would watch it: holders are killed now and then. */

let up: Running;
afterEach(() => up.process.kill("SIGKILL"));

interface Change {
  readonly at: string;
  readonly kind: string;
  readonly text: string;
  readonly resource?: string;
  readonly token?: string;
}

async function startUp(...options: string[]): Promise<void> {
  const [port] = await freePorts(3);
  up = leasehold(["up", "-o", "ndjson", "--port", String(port), ...options]);
}

function changes(): Change[] {
  const whole = up.stdout().split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as Change);
}

function descendantsOf(pid: number): number[] {
  const children = childrenOf(pid);
  return children.concat(children.flatMap(descendantsOf));
}

/** The time promised on the page for newcomers, with slack for a busy machine. */
const readyMsMax = 6_000;
const noiseMs = 2_000;

describe("leasehold up", () => {
  test("is ready soon, shows acquisitions and takeovers, and leaves nothing behind", async () => {
    const startedAtMs = Date.now();
    await startUp();
    const ready = await eventually(
      "all members are ready",
      () => {
        const found = changes().filter(({ text }) => /^member [abc] is ready$/.test(text));
        return found.length === 3 && found;
      },
      4 * readyMsMax,
    );
    const readyMs = Date.parse(ready.at(-1)!.at) - startedAtMs;
    await eventually("a takeover", () => changes().some(({ kind }) => kind === "taken-over"), 40_000);
    const shown = changes();
    const acquired = shown.filter(({ kind }) => kind === "acquired" || kind === "taken-over");
    report(
      `ready after ${readyMs} ms, ${acquired.length} leases; ${shown.find(({ kind }) => kind === "taken-over")!.text}`,
    );
    expect(readyMs).toBeLessThan(readyMsMax + noiseMs);
    for (const resource of new Set(acquired.map((change) => change.resource))) {
      const tokens = acquired
        .filter((change) => change.resource === resource)
        .map(({ token }) => BigInt(token!));
      expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
    }
    const processes = descendantsOf(up.pid);
    expect(processes.length).toBeGreaterThan(5);
    up.process.kill("SIGINT");
    expect(await up.finished).toMatchObject({ code: 0, stderr: "" });
    expect(processes.filter(isAlive)).toEqual([]);
  });

  test("leaves nothing behind when it is killed, at any moment", async () => {
    await startUp("--workers", "3");
    await eventually("a lease is held", () => changes().some(({ kind }) => kind === "acquired"), 30_000);
    // The last worker may still be starting, and a killed one may be followed by another.
    const processes = await eventually("members and workers are there", () => {
      const found = descendantsOf(up.pid).filter(isAlive);
      return found.length === 6 && found;
    });
    up.process.kill("SIGKILL");
    await eventually("all are gone", () => !processes.some(isAlive));
    expect(await up.finished).toMatchObject({ signal: "SIGKILL" });
  });

  test("reports no trouble on a signal to its whole process group, as a terminal sends it", async () => {
    await startUp();
    await eventually("a lease", () => changes().some(({ kind }) => kind === "acquired"), 30_000);
    const all = [...descendantsOf(up.process.pid!), up.process.pid!];
    for (const pid of all) process.kill(pid, "SIGTERM");
    await up.finished;
    expect(changes().filter(({ kind }) => kind === "trouble")).toEqual([]);
    expect(all.filter(isAlive)).toEqual([]);
  });

  test("stops by itself after --duration", async () => {
    await startUp("--duration", "2s", "--workers", "1");
    await sleep(1_000);
    const processes = descendantsOf(up.pid);
    expect(await up.finished).toMatchObject({ code: 0, stderr: "" });
    expect(processes.filter(isAlive)).toEqual([]);
  });
});
