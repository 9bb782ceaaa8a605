import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import installEtcd from "../../core/support/install-etcd.js";

/** Debian's Patroni and PostgreSQL, and `etcdctl` to set up users. */
export default function installPatroni(): void {
  installEtcd();
  const programs = { patroni: "/usr/bin/patroni", postgresql: "/usr/lib/postgresql" };
  const missing = Object.entries(programs).filter(([, path]) => !existsSync(path));
  if (missing.length === 0) return;
  const names = missing.map(([name]) => name);
  for (const words of [
    ["update"],
    ["install", "-y", "--no-install-recommends", "python3-psycopg2", ...names],
  ])
    execFileSync("apt-get", ["-o", "DPkg::Lock::Timeout=600", ...words], {
      stdio: "pipe",
      // Prevents the services from starting: the tests start their own.
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
    });
}
