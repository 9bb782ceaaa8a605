// The packages, their common version and the order of publication.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packages, root } from "../build.mjs";

export { root };

export const read = (path) => readFileSync(join(root, path), "utf8");

/**
 * Runs a command at the root and returns its output. @throws with the command's output if it does not exit
 * with 0
 */
export function run(command, ...words) {
  const { status, stdout, stderr, error } = spawnSync(command, words, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${command} ${words.join(" ")}: ${error?.message ?? stderr}`);
  return stdout;
}

export function readWorkspace() {
  const { version } = JSON.parse(read("package.json"));
  const manifests = packages.map((name) => ({
    folder: `packages/${name}`,
    ...JSON.parse(read(`packages/${name}/package.json`)),
  }));
  const names = new Set(manifests.map(({ name }) => name));
  const published = inOrder(manifests.filter((manifest) => manifest.private !== true));
  return { version, tag: `v${version}`, manifests, names, published };
}

/** Dependencies come before their dependents, since npm needs them first. */
function inOrder(manifests) {
  const order = [];
  const visit = (manifest) => {
    if (order.includes(manifest)) return;
    const needed = { ...manifest.dependencies, ...manifest.peerDependencies };
    for (const other of manifests) if (other.name in needed) visit(other);
    order.push(manifest);
  };
  manifests.forEach(visit);
  return order;
}
