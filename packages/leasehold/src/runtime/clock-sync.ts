import { execFile } from "node:child_process";

/** Timeout of systemd's tool, ms. A working one answers at once. */
const askMsMax = 1_000;

/**
 * Whether a time service synchronizes the system clock, according to the kernel (`timedatectl`); `undefined`
 * if unknown, as in most containers.
 */
export function isClockSynchronized(command = "timedatectl"): Promise<boolean | undefined> {
  const args = ["show", "--property=NTPSynchronized", "--value"];
  return new Promise((resolve) => {
    execFile(command, args, { timeout: askMsMax }, (error, stdout) => {
      const said = error === null ? stdout.trim() : "";
      resolve(said === "yes" ? true : said === "no" ? false : undefined);
    });
  });
}
