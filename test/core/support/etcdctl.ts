import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs Debian's `etcdctl` and returns its output. Rejects with its standard error when it fails. */
export async function etcdctl(endpoints: string, ...words: string[]): Promise<string> {
  const all = ["--endpoints", endpoints, "--dial-timeout=2s", ...words];
  const { stdout } = await run("etcdctl", all, { env: { ...process.env, ETCDCTL_API: "3" } });
  return stdout;
}
