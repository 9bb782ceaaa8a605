import { readFileSync, readlinkSync } from "node:fs";

/**
 * The name of the steady clock that a process reads: stamps of two processes can be compared only if it is the same.
 * Within one boot of a machine it is, unless a time namespace gives a process another one.
 */
export function steadyClockOf(pid: number | "self"): string {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `boot ${boot} ${readlinkSync(`/proc/${pid}/ns/time`)}`;
}
