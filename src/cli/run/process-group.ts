import { readdirSync, readFileSync } from "node:fs";

/** Sends a signal to every process of a group; nothing happens when there is none left. */
export function signalGroup(groupId: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-groupId, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ESRCH: all gone. EPERM: a process that changed its user; there is nothing that we may do about it.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/** True when no process of the group can run any more. The dead that nobody has collected do not count. */
export function groupIsGone(groupId: number): boolean {
  try {
    process.kill(-groupId, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  return process.platform === "linux" && onlyZombies(groupId);
}

/** A container's first process often collects no orphans: without this look they would keep a finished group "alive". */
function onlyZombies(groupId: number): boolean {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = readStat(entry);
    if (stat !== undefined && stat.group === groupId && stat.state !== "Z" && stat.state !== "X")
      return false;
  }
  return true;
}

function readStat(processId: string): { state: string; group: number } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${processId}/stat`, "utf8");
  } catch {
    return undefined; // It ended while we looked.
  }
  // The name in parentheses may itself hold blanks and parentheses: the fields begin after the last one.
  const [state = "", , group = ""] = text.slice(text.lastIndexOf(")") + 2).split(" ", 3);
  return { state, group: Number(group) };
}
