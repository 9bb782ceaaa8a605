import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The compiled sources, which real processes need. `LEASEHOLD_DIST` names another build to test. */
export const dist =
  process.env["LEASEHOLD_DIST"] ?? fileURLToPath(new URL("../../packages/leasehold/dist", import.meta.url));
/** The package of that build, and the folder of all packages of that build. */
export const packageFolder = join(dist, "..");
export const packagesFolder = join(packageFolder, "..");

export const mainPath = join(dist, "cli", "main.js");
/** The same build, but {@link leasehold} runs it without the bundle that the installed command loads. */
export const unbundled = `${dist}/`;
/** The installed command, if the build is the package's own. */
const commandPath =
  process.env["LEASEHOLD_DIST"] === undefined ? join(dist, "..", "bin", "leasehold.js") : mainPath;
export const guardPath = join(dist, "cli", "run", "guard.js");

if (!existsSync(mainPath))
  throw new Error(`${mainPath} is not there: "npm run build" comes before these tests`);

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly finished: Promise<Finished>;
  /** Standard output so far. */
  stdout(): string;
  stderr(): string;
}

/** Starts `leasehold` with these arguments, as a user would. `build` replaces the usual build. */
export function leasehold(
  words: readonly string[],
  options: SpawnOptions = {},
  build: string = dist,
): Running {
  const path = build === dist ? commandPath : join(build, "cli", "main.js");
  const child = spawn(process.execPath, [path, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { process: child, pid: child.pid ?? -1, finished, stdout: () => stdout, stderr: () => stderr };
}

/** True while the process can still run: false for a zombie that hasn't been reaped. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const state = existsSync(`/proc/${pid}/stat`) ? stateOf(pid) : "R";
  return state !== "Z" && state !== "X";
}

function stateOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2, text.lastIndexOf(")") + 3);
  } catch {
    return "X";
  }
}

/** The processes that a process has started and that still exist (Linux). */
export function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && parentOf(entry) === pid)
    .map(Number);
}

function parentOf(entry: string): number | undefined {
  try {
    const text = readFileSync(`/proc/${entry}/stat`, "utf8");
    return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}

/**
 * Calls `probe` every few milliseconds until it returns a value other than `undefined` or `false`. Fails
 * after `withinMs`.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 120_000,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > end) throw new Error(`${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
