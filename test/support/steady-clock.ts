import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * The name of the steady clock that a process reads: stamps of two processes can be compared only if it is the same.
 * It begins anew with each boot, and a time namespace may give a process another one. Where there is no /proc, the
 * machine's name has to do.
 *
 * @throws Error when the process has gone.
 */
export function steadyClockOf(pid: number | "self"): string {
  if (!existsSync("/proc/self/ns/time")) return hostname();
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `boot ${boot} ${readlinkSync(`/proc/${pid}/ns/time`)}`;
}
