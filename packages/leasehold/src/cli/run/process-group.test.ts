import { afterEach, describe, expect, test, vi } from "vitest";
import { CommandProcesses } from "./process-group.js";

/** Simulated processes in /proc, by number, with an event just before one is read. */
const machine = vi.hoisted(() => ({
  processes: new Map<string, { group: number; session: number }>(),
  beforeLook: (_pid: string): void => undefined,
}));
vi.mock("node:fs", async (original) => ({
  ...(await original<typeof import("node:fs")>()),
  readdirSync: () => ["self", ...machine.processes.keys()],
  readFileSync: () => "",
  openSync: (path: string) => {
    const [, , pid = ""] = path.split("/");
    machine.beforeLook(pid);
    if (!machine.processes.has(pid)) throw new Error("ENOENT");
    return Number(pid);
  },
  readSync: (pid: number, into: Buffer) => {
    const { group, session } = machine.processes.get(String(pid))!;
    return into.write(`${pid} (sh) S 1 ${group} ${session}${" 0".repeat(15)} 7`);
  },
  closeSync: () => undefined,
}));
const kill = vi.spyOn(process, "kill").mockReturnValue(true);
afterEach(() => {
  kill.mockClear();
  machine.processes.clear();
  machine.beforeLook = () => undefined;
});

describe.skipIf(process.platform !== "linux")("the processes of a command", () => {
  test("are not gone while a child of a process that died during the look exists, in a group of its own", () => {
    machine.processes.set("100", { group: 100, session: 100 });
    const command = new CommandProcesses(100, "mark");
    machine.beforeLook = (pid) => {
      if (pid !== "100") return;
      machine.processes.delete("100");
      machine.processes.set("101", { group: 101, session: 100 });
    };
    expect(command.sweep()).toBeUndefined();
    expect(kill).toHaveBeenCalledWith(101, "SIGKILL");
    machine.processes.clear();
    expect(command.sweep()).toEqual([]);
  });

  test("are listed a bounded number of times, however fast others start", () => {
    const command = new CommandProcesses(100, "mark");
    let last = 200;
    machine.processes.set("200", { group: 1, session: 1 });
    machine.beforeLook = () => void machine.processes.set(String((last += 1)), { group: 1, session: 1 });
    expect(command.sweep()).toEqual([]);
    expect(last).toBeLessThan(10_000);
  });
});
