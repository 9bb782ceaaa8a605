// The place of a run's servers: one temporary directory, and processes that end with this one, however it
// ends.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Ends a server even when SIGKILL ends this process, which no handler can catch. */
const endsWithUs = existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"] : [];

const startsWithinMs = 30_000;

/** Polls until the condition is true. An exception counts as false. */
export async function until(holds, what) {
  const deadline = performance.now() + startsWithinMs;
  let last;
  while (performance.now() < deadline) {
    try {
      if (await holds()) return;
    } catch (error) {
      last = error;
    }
    await sleep(100);
  }
  throw new Error(`${what} within ${startsWithinMs / 1_000} s: no`, { cause: last });
}

export class Room {
  #root;
  #children = new Set();

  /** @param parent the parent directory; the servers write to its disk */
  constructor(parent) {
    this.#root = mkdtempSync(join(parent, "leasehold-bench-"));
    process.on("exit", () => this.#clear());
    for (const [signal, status] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
      ["SIGHUP", 129],
    ]) {
      process.on(signal, () => process.exit(status));
    }
  }

  /** Creates a new folder at each call. */
  folder(name) {
    return mkdtempSync(join(this.#root, `${name}-`));
  }

  /** Starts a server that can be killed and restarted. Its output goes to a file in `folder`. */
  server(folder, command, args) {
    const start = () => {
      const log = openSync(join(folder, "log"), "a");
      const [program, ...all] = [...endsWithUs, command, ...args];
      const child = spawn(program, all, { cwd: folder, stdio: ["ignore", log, log] });
      closeSync(log);
      child.on("error", () => {});
      this.#children.add(child);
      child.on("exit", () => this.#children.delete(child));
      return child;
    };
    let child = start();
    return {
      get pid() {
        return child.pid;
      },
      kill: () => child.kill("SIGKILL"),
      restart: () => {
        child = start();
      },
      log: () => readFileSync(join(folder, "log"), "utf8").slice(-2_000),
    };
  }

  #clear() {
    for (const child of this.#children) child.kill("SIGKILL");
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  }
}

/** CPU time in µs and resident bytes of a process, on Linux, where a tick is a hundredth of a second. */
export function usageOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
    const [, pages] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ");
    return {
      cpuUs: (Number(fields[11]) + Number(fields[12])) * 10_000,
      residentBytes: Number(pages) * 4_096,
    };
  } catch {
    return { cpuUs: 0, residentBytes: 0 };
  }
}

/** The version of an installed Debian package, or undefined. */
export function debianVersion(name) {
  try {
    const format = "${db:Status-Status} ${Version}";
    const [status, version] = execFileSync("dpkg-query", ["-W", "-f", format, name], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).split(" ");
    return status === "installed" ? version : undefined;
  } catch {
    return undefined;
  }
}
