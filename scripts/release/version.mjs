// `npm run release -- version 0.2.0`: sets the version of all packages, of their dependencies on each other,
// of the lock file, of the changelog, and of the Python client.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packages } from "../build.mjs";
import { read, root } from "./workspace.mjs";

const semantic = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z.-]+)?$/;

export function setVersion(version) {
  if (!semantic.test(version ?? ""))
    throw new Error(`${version} is no version: npm run release -- version 0.2.0`);
  const paths = ["package.json", ...packages.map((name) => `packages/${name}/package.json`)];
  const names = new Set(paths.map((path) => JSON.parse(read(path)).name));
  for (const path of paths) change(path, (manifest) => setIn(manifest, version, names));
  change("package-lock.json", (lock) => {
    lock.version = version;
    for (const name of ["", ...packages.map((each) => `packages/${each}`)])
      setIn(lock.packages[name], version, names);
  });
  const python = read("clients/python/pyproject.toml");
  writeFileSync(
    join(root, "clients/python/pyproject.toml"),
    python.replace(/^version = ".*"$/m, `version = "${version}"`),
  );
  const heading = `## ${version} (${new Date().toISOString().slice(0, 10)})`;
  const changelog = read("CHANGELOG.md");
  const open = new RegExp(`^## (?:Unreleased|${version.replaceAll(".", "\\.")}\\b.*)$`, "m");
  if (!open.test(changelog)) throw new Error('CHANGELOG.md has no heading "## Unreleased"');
  writeFileSync(join(root, "CHANGELOG.md"), changelog.replace(open, heading));
}

function change(path, set) {
  const content = JSON.parse(read(path));
  set(content);
  writeFileSync(join(root, path), `${JSON.stringify(content, null, 2)}\n`);
}

function setIn(manifest, version, names) {
  manifest.version = version;
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"])
    for (const other of Object.keys(manifest[kind] ?? {}))
      if (names.has(other)) manifest[kind][other] = version;
}
