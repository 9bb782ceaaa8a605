import { execFileSync } from "node:child_process";

/** Debian's etcd and etcdctl, to which the tests compare the core. */
export default function installEtcd(): void {
  const missing = ["etcd", "etcdctl"].filter((program) => !isThere(program));
  if (missing.length === 0) return;
  const run = (...words: string[]) =>
    execFileSync("apt-get", words, {
      stdio: "pipe",
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  run("update");
  run("install", "-y", "--no-install-recommends", "etcd-server", "etcd-client");
}

function isThere(program: string): boolean {
  try {
    execFileSync(program, [program === "etcd" ? "--version" : "version"], { stdio: "pipe" });
    return true;
  } catch {
    return false;
  }
}
