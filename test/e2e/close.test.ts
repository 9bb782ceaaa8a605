import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { open } from "leasehold";
import type { Leases, OpenOptions } from "leasehold";
import { dist } from "../support/built.js";
import { Arena } from "./arena.js";

/**
 * `close()` settles within its bound, leaves no handle open, and lets the process end by itself, whatever the
 * client was doing.
 */

const closerPath = fileURLToPath(new URL("closer.mjs", import.meta.url));

/** One second for leaders and one for releases; the rest is slack for a busy machine. */
const closeMsMax = 3_000;

interface Closed {
  readonly tookMs: number;
  readonly handles: readonly string[];
  readonly outcomes: readonly string[];
}

let arena: Arena;
let other: Leases;

beforeAll(async () => {
  arena = await Arena.start();
  other = await open(...arena.endpoints, { name: "other" });
  await other.acquire("theirs");
});

afterEach(() => arena.continueAll());

afterAll(async () => {
  await other.close();
  await arena.close();
});

async function closeWhile(
  situation: string,
  options: OpenOptions,
  disturb: () => void = () => undefined,
): Promise<Closed & { exitedAfterMs: number }> {
  const orders = {
    library: pathToFileURL(join(dist, "index.js")).href,
    urls: arena.endpoints,
    options: { name: "closer", ...options },
    situation,
  };
  const child = fork(closerPath, [JSON.stringify(orders)]);
  const exited = once(child, "exit");
  await once(child, "message");
  disturb();
  const told = once(child, "message", { signal: AbortSignal.timeout(20_000) });
  child.send("close");
  const [closed] = (await told) as [Closed];
  const from = performance.now();
  await Promise.race([exited, sleep(10_000, undefined, { ref: false })]);
  const exitedAfterMs = performance.now() - from;
  child.kill("SIGKILL");
  return { ...closed, exitedAfterMs };
}

const options: readonly (readonly [string, OpenOptions])[] = [
  ["in the main thread", {}],
  ["with a worker thread", { renewInWorker: true }],
];

describe.each(options)("%s", (_, withOptions) => {
  test.each(["idle", "holding", "waiting", "attempting"])(
    "a client that is %s closes in time and leaves nothing behind, with all members up",
    async (situation) => {
      const closed = await closeWhile(situation, withOptions);
      expect(closed.tookMs).toBeLessThan(closeMsMax);
      expect(closed.handles).toEqual([]);
      expect(closed.exitedAfterMs).toBeLessThan(1_500);
      expect(new Set(closed.outcomes)).not.toContain(undefined);
      if (situation !== "attempting") await (await other.acquire("held/0", { wait: "1s" })).release();
    },
  );

  test.each(["idle", "holding", "waiting", "attempting"])(
    "a client that is %s closes in time and leaves nothing behind, with a member that hangs",
    async (situation) => {
      const closed = await closeWhile(situation, withOptions, () => arena.stop(arena.memberPid("b")));
      expect(closed.tookMs).toBeLessThan(closeMsMax);
      expect(closed.handles).toEqual([]);
      expect(closed.exitedAfterMs).toBeLessThan(1_500);
    },
  );

  test.each(["holding", "waiting", "attempting"])(
    "a client that is %s closes in time and leaves nothing behind, with all members hanging",
    async (situation) => {
      const closed = await closeWhile(situation, withOptions, () => {
        for (const id of ["a", "b", "c"]) arena.stop(arena.memberPid(id));
      });
      expect(closed.tookMs).toBeLessThan(closeMsMax);
      expect(closed.handles).toEqual([]);
      expect(closed.exitedAfterMs).toBeLessThan(1_500);
      arena.continueAll();
      await other.acquire("between", { wait: "10s" }).then((lease) => lease.release());
    },
  );
});
