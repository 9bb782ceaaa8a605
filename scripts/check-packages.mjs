// Lints each package as npm would pack it: the files that its manifest lists exist, and its types resolve.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { packages, root } from "./build.mjs";

/**
 * Entry points that are not checked: workers are not imported as modules, and the shared ones have wildcards.
 */
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
