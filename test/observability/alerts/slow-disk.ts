import { spawn } from "node:child_process";
import { once } from "node:events";

/** The system calls that make data durable: syncs, and writes to files opened for synchronous writes. */
const calls = "fsync,fdatasync,pwrite64,pwritev,pwritev2";

/** Delays each write and sync of a process, with strace, until the returned function is called. */
export function slowDisk(pid: number, delayMs: number): () => Promise<void> {
  const words = ["-f", "-p", String(pid), "-e", `trace=${calls}`, "-o", "/dev/null"];
  const inject = ["-e", `inject=${calls}:delay_exit=${delayMs * 1_000}`];
  const strace = spawn("strace", [...words, ...inject], { stdio: "ignore" });
  return async () => {
    strace.kill("SIGTERM");
    if (strace.exitCode === null && strace.signalCode === null) await once(strace, "exit");
  };
}
