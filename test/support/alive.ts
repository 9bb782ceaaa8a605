import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { dist } from "./built.js";

const program = fileURLToPath(new URL("../e2e/alive.mjs", import.meta.url));
/**
 * The longest time from the program's last line to the end of its process. A process that ends later was kept
 * alive.
 */
const endMsMax = 4_000;

/** Orders for the program. */
interface Orders {
  readonly urls: readonly string[];
  readonly ttl: string;
  readonly options?: object | undefined;
  /**
   * True if the program closes its leases at the end, on grounds that keep something open from the first
   * lease on.
   */
  readonly closes?: boolean;
}

interface Outcome {
  readonly said: readonly string[];
  readonly code: number | null;
  readonly endsByItself: boolean;
}

/**
 * Runs a program that waits and holds in each way while nothing else keeps it alive. Its process must live
 * for exactly as long: if a wait didn't keep it alive, it would exit with code 13; if open leases did, it
 * wouldn't end by itself.
 */
export async function runProgram(
  orders: Orders,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const words = [program, JSON.stringify({ library: pathToFileURL(join(dist, "index.js")).href, ...orders })];
  const child = spawn(process.execPath, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let output = "";
  let saidMs = 0;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      saidMs = performance.now();
    });
  const code = await new Promise<number | null>((resolve) => {
    const stuck = setTimeout(() => child.kill("SIGKILL"), 60_000);
    child.once("close", (exit) => {
      clearTimeout(stuck);
      resolve(exit);
    });
  });
  return { said: output.split("\n"), code, endsByItself: performance.now() - saidMs < endMsMax };
}

/** The outcome expected. */
export const alive: Outcome = {
  said: ["opened", "waited true", "held max-hold", "watched watched", "led", ""],
  code: 0,
  endsByItself: true,
};
