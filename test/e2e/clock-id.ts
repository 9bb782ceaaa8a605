import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Which steady clock `process.hrtime` reads here: it begins anew with each boot, and a time namespace may shift it.
 * Where there is no /proc, the machine's name has to do.
 */
export function clockId(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/time")}`;
  } catch {
    return hostname();
  }
}
