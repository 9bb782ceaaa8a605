// Lints each package as npm would pack it: what its manifest promises is there, and its types resolve.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { packages, root } from "./build.mjs";

/** Workers are no modules to import, and what the packages share has wildcards. */
const excluded = ["lease-worker", "./inner/*.js", "./etcd/gen/*.js"];

function run(command, ...words) {
  const program = join(root, "node_modules", ".bin", command);
  const { status } = spawnSync(program, words, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

for (const name of packages) {
  const folder = join("packages", name);
  run("publint", "--strict", folder);
  run("attw", "--pack", folder, "--profile", "esm-only", "--exclude-entrypoints", ...excluded);
}
