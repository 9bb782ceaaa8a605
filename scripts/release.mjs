// Checks that the packages can be released as they stand, shows what npm would publish, and tags the commit:
// `npm run release -- --dry-run` does all but the tag. Publishing is a command of npm's, which is printed at the end.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packages, root } from "./build.mjs";

const words = process.argv.slice(2);
const isDryRun = words.includes("--dry-run");
const unknown = words.find((word) => word !== "--dry-run");
if (unknown !== undefined) {
  process.stderr.write(`${unknown}? npm run release [-- --dry-run]\n`);
  process.exit(2);
}

const read = (path) => readFileSync(join(root, path), "utf8");
const run = (command, ...rest) => {
  const { status, stdout, stderr } = spawnSync(command, rest, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${rest.join(" ")}: ${stderr}`);
  return stdout;
};

const { version } = JSON.parse(read("package.json"));
const manifests = packages.map((name) => ({
  folder: `packages/${name}`,
  ...JSON.parse(read(`packages/${name}/package.json`)),
}));
const names = new Set(manifests.map(({ name }) => name));
const published = manifests.filter((manifest) => manifest.private !== true);
const tag = `v${version}`;

/** Dependencies come before those that need them, as npm has to have them first. */
function inOrder() {
  const order = [];
  const visit = (manifest) => {
    if (order.includes(manifest)) return;
    const needed = { ...manifest.dependencies, ...manifest.peerDependencies };
    for (const other of published) if (other.name in needed) visit(other);
    order.push(manifest);
  };
  published.forEach(visit);
  return order;
}

function problemsOfRepository() {
  const problems = [];
  const changed = run("git", "status", "--porcelain").trim();
  if (changed !== "") problems.push(`the tree is not clean:\n${changed}`);
  if (run("git", "tag", "--list", tag).trim() !== "") problems.push(`the tag ${tag} exists already`);
  const heading = read("CHANGELOG.md")
    .match(/^## .*/gm)
    ?.find((line) => line.split(/\s/)[1] === version);
  if (heading === undefined) problems.push(`CHANGELOG.md has no heading "## ${version}"`);
  else if (!/\d{4}-\d\d-\d\d/.test(heading)) problems.push(`CHANGELOG.md: "${heading}" has no date`);
  return problems;
}

/** One version everywhere, and each package asks for exactly this one of the others. */
function problemsOf(manifest) {
  const { folder, name } = manifest;
  const problems = [];
  if (manifest.version !== version) problems.push(`is ${manifest.version}, and the workspace is ${version}`);
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"])
    for (const [other, wanted] of Object.entries(manifest[kind] ?? {}))
      if (names.has(other) && wanted !== version)
        problems.push(`wants ${other} ${wanted} in its ${kind}, not exactly ${version}`);
  for (const script of ["preinstall", "install", "postinstall", "prepare"])
    if (manifest.scripts?.[script] !== undefined) problems.push(`runs "${script}" where it is installed`);
  const locked = JSON.parse(read("package-lock.json")).packages[folder]?.version;
  if (locked !== manifest.version) problems.push(`is ${locked} in package-lock.json: run npm install`);
  return problems.map((problem) => `${name} ${problem}`);
}

function problemsOfPacked({ name, bin = {} }, files) {
  const paths = files.map(({ path }) => path);
  const wanted = ["package.json", "README.md", "LICENSE", ...Object.values(bin)].map((path) =>
    path.replace("./", ""),
  );
  const missing = wanted.filter((path) => !paths.includes(path)).map((path) => `${name} has no ${path}`);
  const strange = paths.filter((path) =>
    /^dist\/.*\.test\.|planted|\.mistakes$|\.tsbuildinfo$|(?:^|\/)\./.test(path),
  );
  return [...missing, ...strange.map((path) => `${name} would have ${path}`)];
}

const size = (bytes) => `${(bytes / 1_000).toFixed(1)} kB`.padStart(11);

/** By the first folder: how many files, and how large they are. */
function show({ name, files, size: packed, unpackedSize }) {
  process.stdout.write(`\n${name}@${version}: ${files.length} files, ${size(packed).trim()} packed\n`);
  const folders = new Map();
  for (const { path, size: bytes } of files) {
    const place = path.includes("/") ? `${path.slice(0, path.indexOf("/"))}/` : path;
    const { count = 0, sum = 0 } = folders.get(place) ?? {};
    folders.set(place, { count: count + 1, sum: sum + bytes });
  }
  for (const [place, { count, sum }] of folders)
    process.stdout.write(`${size(sum)}  ${place}${place.endsWith("/") ? ` (${count} files)` : ""}\n`);
  process.stdout.write(`${size(unpackedSize)}  in all\n`);
}

const problems = [...problemsOfRepository(), ...manifests.flatMap(problemsOf)];
for (const manifest of inOrder()) {
  const [packed] = JSON.parse(
    run("npm", "pack", "--dry-run", "--json", "--ignore-scripts", `./${manifest.folder}`),
  );
  show(packed);
  problems.push(...problemsOfPacked(manifest, packed.files));
}
if (problems.length > 0) {
  process.stdout.write(`\nNOT ready:\n${problems.map((problem) => `- ${problem}\n`).join("")}`);
  process.exit(1);
}
if (isDryRun) process.stdout.write(`\nready: ${tag} is not set, as this was a dry run\n`);
else {
  run("git", "tag", "--annotate", tag, "--message", `Leasehold ${version}`);
  process.stdout.write(`\n${tag} is set. What is left:\n  git push origin ${tag}\n`);
  for (const { name } of inOrder())
    process.stdout.write(`  npm publish --access public --workspace ${name}\n`);
}
