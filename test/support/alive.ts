import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { dist } from "./built.js";

const program = fileURLToPath(new URL("../e2e/alive.mjs", import.meta.url));
/** From the last line of the program until its process has ended by itself. */
const endMsMax = 4_000;

/** What the program is told. */
interface Orders {
  readonly urls: readonly string[];
  readonly ttl: string;
  readonly options?: object | undefined;
  /** It closes at its end: there is what stays open from the first lease on. */
  readonly closes?: boolean;
}

interface Outcome {
  readonly said: readonly string[];
  readonly code: number | null;
  readonly endsByItself: boolean;
}

/**
 * A program that waits and holds in each way, and has nothing else that keeps it alive, lives as long as it does so:
 * what is awaited in vain would end it with code 13, and what is only open would keep it from its end.
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

/** What is to become of it. */
export const alive: Outcome = {
  said: ["opened", "waited true", "held max-hold", "watched watched", "led", ""],
  code: 0,
  endsByItself: true,
};
