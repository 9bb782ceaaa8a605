import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * The name of the steady clock that a process reads: time stamps of two processes are comparable only if it
 * is the same. The clock starts anew with each boot, and a time namespace may give a process another one.
 * Without /proc, the machine's name is used.
 *
 * @throws Error when the process has gone.
 */
export function steadyClockOf(pid: number | "self"): string {
  if (!existsSync("/proc/self/ns/time")) return hostname();
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `boot ${boot} ${readlinkSync(`/proc/${pid}/ns/time`)}`;
}
