import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";

/**
 * Installs the stores that tests run against, if they are missing and can be installed. Each Debian package
 * is recognized by one of its files.
 */
const postgresRoot = "/usr/lib/postgresql";
const packages = {
  "redis-server": existsSync("/usr/bin/redis-server"),
  postgresql: existsSync(postgresRoot) && readdirSync(postgresRoot).length > 0,
  pgbouncer: existsSync("/usr/sbin/pgbouncer"),
  "mariadb-server-core": existsSync("/usr/sbin/mariadbd"),
  // `mariadb-install-db` needs a program of it.
  "mariadb-client-core": existsSync("/usr/bin/my_print_defaults"),
  radosgw: existsSync("/usr/bin/radosgw"),
  "ceph-common": existsSync("/usr/bin/ceph-authtool"),
  "ceph-mon": existsSync("/usr/bin/ceph-mon"),
  "ceph-osd": existsSync("/usr/bin/ceph-osd"),
};

const missing = Object.keys(packages).filter((name) => !packages[name]);
if (missing.length > 0) {
  const isPossible = existsSync("/usr/bin/apt-get") && process.getuid?.() === 0;
  if (!isPossible) {
    process.stderr.write(
      `The tests of stores need Debian's packages ${missing.join(", ")}; install them first.\n`,
    );
    process.exit(2);
  }
  process.stdout.write(`installing ${missing.join(", ")}\n`);
  for (const args of [
    ["update", "-qq"],
    ["install", "-y", "-qq", "--no-install-recommends", ...missing],
  ]) {
    const options = ["-o", "DPkg::Lock::Timeout=600"];
    const { status } = spawnSync("apt-get", [...options, ...args], {
      // Prevents the services from starting: the tests start their own.
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (status !== 0) process.exit(status ?? 1);
  }
}
