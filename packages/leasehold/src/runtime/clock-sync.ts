import { execFile } from "node:child_process";

/** systemd's tool answers at once, or is broken, ms. */
const askMsMax = 1_000;

/**
 * Whether the system clock is kept by a time service, as the kernel says (`timedatectl`); `undefined` where
 * that cannot be asked, as in most containers.
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
