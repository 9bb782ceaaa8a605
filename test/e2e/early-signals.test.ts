import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, test } from "vitest";
import {
  type Finished,
  type Running,
  childrenOf,
  eventually,
  isAlive,
  leasehold,
  unbundled,
} from "../support/built.js";
import { PlantedBuild } from "../support/planted-build.js";
import { freePorts } from "../free-ports.js";

/**
 * A command that is asked to end while it is starting ends in the same way as a running one, at any moment.
 * The moments are swept from the first line of our code until the command works. Before that, the signal ends
 * Node.
 */

const TRIES = Number(process.env["LEASEHOLD_TRIES"] ?? 4);
/** The time that a command needs to start on a busy machine. */
const SWEEP_MS = 400;
/** The time after which a command works, on a machine that isn't busy. */
const WORKS_MS = 2_000;
/** The time after which a command that was never seen to listen has stopped catching signals. */
const LETS_GO_MS = 5_000;
/** A command that takes longer to end has waited for something else. */
const END_MS_MAX = 10_000;
const GOLDEN_SECTION = (Math.sqrt(5) - 1) / 2;
/** SIGHUP's bit in the set of caught signals: Node itself doesn't catch it. */
const HANGUP_BIT = 1n;

const folder = mkdtempSync(join(tmpdir(), "leasehold-early-"));
const started: Running[] = [];

afterAll(() => {
  for (const { process: child } of started) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** True once the process runs our code. */
function listens(pid: number): boolean {
  try {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "0";
    return (BigInt(`0x${caught}`) & HANGUP_BIT) !== 0n;
  } catch {
    return false;
  }
}

async function signalledAfter(
  words: readonly string[],
  afterMs: number,
  signal: NodeJS.Signals,
  build?: string,
): Promise<Finished> {
  const running = leasehold(words, {}, build);
  started.push(running);
  const begunMs = performance.now();
  // A command that stops catching signals does so within milliseconds, which a busy machine may miss.
  const hasLetGo = () => performance.now() - begunMs > LETS_GO_MS;
  await eventually("it listens", () => listens(running.pid) || hasLetGo(), 20_000);
  await sleep(afterMs);
  const below = childrenOf(running.pid);
  running.process.kill(signal);
  const late = sleep(END_MS_MAX, undefined, { ref: false }).then(() => Promise.reject(new Error("no end")));
  const finished = await Promise.race([running.finished, late]);
  await eventually("what it started is gone", () => !below.some(isAlive));
  return finished;
}

/** A hook for `--import` that delays the loading of our modules and reports its beginning. */
const slowLoading = `data:text/javascript,${encodeURIComponent(`
  import { register } from "node:module";
  register("data:text/javascript," + encodeURIComponent(\`
    import { writeSync } from "node:fs";
    export async function resolve(specifier, context, next) {
      if (specifier === "./command.js") {
        writeSync(1, "loading");
        await new Promise((resolve) => setTimeout(resolve, 300));
      }
      return next(specifier, context);
    }
  \`));
`)}`;

async function signalledWhileItLoads(words: readonly string[], build = unbundled): Promise<Finished> {
  const env = { ...process.env, NODE_OPTIONS: `--import=${slowLoading}` };
  const running = leasehold(words, { env }, build);
  started.push(running);
  await eventually("it loads", () => running.stdout() !== "", 20_000);
  running.process.kill("SIGTERM");
  return running.finished;
}

async function endsOf(words: readonly string[], signal: NodeJS.Signals, build?: string): Promise<Finished[]> {
  const ends: Finished[] = [];
  for (let index = 0; index < TRIES; index++)
    ends.push(await signalledAfter(words, ((index * GOLDEN_SECTION) % 1) * SWEEP_MS, signal, build));
  return ends;
}

const memory = ["--endpoints", "memory:"];
/** An endpoint on which nothing listens: opening takes as long as `--wait` allows. */
const nobody = ["--endpoints", "127.0.0.1:1", "--wait", "10m"];
const stores = ["a", "b", "c"].map((name) => join(folder, name));
for (const store of stores) mkdirSync(store);
const files = ["--endpoints", `delta+file:${stores.join(",")}`];
const [peerPort, clientPort, corePort, upPort] = await freePorts(6);
const urls = (port: number | undefined): string => `http://127.0.0.1:${port}`;
const coreFlags = ["--listen-client-urls", urls(clientPort), "--listen-peer-urls", urls(corePort)];

describe.skipIf(process.platform !== "linux").concurrent("a signal during the start ends", () => {
  test.for([
    ["run, before the command and in it", ["run", "x", ...memory, "--", "sleep", "300"], 143],
    ["run that waits for members", ["run", "x", ...nobody, "--", "sleep", "300"], 143],
    ["run on files", ["run", "x", ...files, "--wait", "1m", "--", "sleep", "300"], 143],
    ["hold", ["hold", "x", ...memory], 0],
    ["hold that waits for members", ["hold", "x", ...nobody], 0],
    ["watch", ["watch", ...memory], 0],
    ["elect", ["elect", "x", ...memory], 0],
    ["elect with a command", ["elect", "x", ...memory, "--", "sleep", "300"], 143],
    ["peer", ["peer", "--id", "a", "--member", `a=127.0.0.1:${peerPort}`], 0],
    ["core", ["core", "--data-dir", join(folder, "core"), ...coreFlags], 0],
    ["up", ["up", "--port", String(upPort), "--workers", "1"], 0],
  ] as const)("%s", { timeout: 600_000 }, async ([, words, code], { expect }) => {
    for (const end of await endsOf(words, "SIGTERM"))
      expect(end).toMatchObject({ code, signal: null, stderr: "" });
  });

  test(
    "a command without anything to clean up, which dies of the signal",
    { timeout: 600_000 },
    async ({ expect }) => {
      const words = ["get", "x", "--endpoints", "127.0.0.1:1", "--timeout", "1m"];
      // The bundled command holds signals for too short a time to be seen.
      for (const end of await endsOf(words, "SIGTERM", unbundled))
        expect(end).toMatchObject({ code: null, signal: "SIGTERM", stderr: "" });
    },
  );

  test("a command on leases in memory, which nothing else keeps alive, runs until the signal", async ({
    expect,
  }) => {
    for (const words of [
      ["hold", "x", ...memory],
      ["watch", ...memory],
      ["elect", "x", ...memory],
    ])
      expect(await signalledAfter(words, WORKS_MS, "SIGTERM")).toMatchObject({
        code: 0,
        signal: null,
        stderr: "",
      });
  });

  test("a command that is still being loaded: hold in order, get by the signal", async ({ expect }) => {
    const hold = ["hold", "x", ...memory];
    expect(await signalledWhileItLoads(hold)).toMatchObject({ code: 0, signal: null });
    const get = ["get", "x", "--endpoints", "127.0.0.1:1"];
    expect(await signalledWhileItLoads(get)).toMatchObject({ code: null, signal: "SIGTERM" });
  });

  test("a hold that is still being loaded: by the signal itself, if signals are not held from the start", async ({
    expect,
  }) => {
    using build = new PlantedBuild({ "main.js": [["holdSignals();", ""]] });
    const hold = ["hold", "x", ...memory];
    expect(await signalledWhileItLoads(hold, build.dist)).toMatchObject({ code: null, signal: "SIGTERM" });
  });
});
