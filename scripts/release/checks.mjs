// The requirements for a release: of the repository, of each package's manifest and of the files that npm
// packs.
import { read, run } from "./workspace.mjs";

/** Licences that were checked to be compatible with MIT. All others are refused. */
const licensesAllowed = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
]);

export function problemsOfRepository({ version, tag }, { isTagged }) {
  const problems = [];
  const changed = run("git", "status", "--porcelain").trim();
  if (changed !== "") problems.push(`the tree is not clean:\n${changed}`);
  const tagged = run("git", "tag", "--list", tag, "--points-at", "HEAD").trim() !== "";
  if (isTagged && !tagged) problems.push(`the tag ${tag} is not at this commit: npm run release sets it`);
  if (!isTagged && run("git", "tag", "--list", tag).trim() !== "")
    problems.push(`the tag ${tag} exists already`);
  const heading = read("CHANGELOG.md")
    .match(/^## .*/gm)
    ?.find((line) => line.split(/\s/)[1] === version);
  if (heading === undefined) problems.push(`CHANGELOG.md has no heading "## ${version}"`);
  else if (!/\d{4}-\d\d-\d\d/.test(heading)) problems.push(`CHANGELOG.md: "${heading}" has no date`);
  const [minor] = /^\d+\.\d+/.exec(version);
  if (!read("SECURITY.md").includes(`(now ${minor})`))
    problems.push(`SECURITY.md names another supported version than ${minor}`);
  return problems;
}

/** All versions are equal, and each package depends on exactly this version of the others. */
export function problemsOfManifest(manifest, { version, names }) {
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

/** @param files the files that npm has packed */
export function problemsOfPacked({ name, bin = {}, files: listed = [] }, files) {
  const paths = files.map(({ path }) => path);
  const wanted = ["package.json", "README.md", "LICENSE", ...Object.values(bin)].map((path) =>
    path.replace("./", ""),
  );
  const absent = [
    ...wanted.filter((path) => !paths.includes(path)),
    ...listed.filter(
      (path) => !path.startsWith("!") && !paths.some((each) => each === path || each.startsWith(`${path}/`)),
    ),
  ];
  const missing = absent.map((path) => `${name} has no ${path}`);
  const strange = paths.filter((path) =>
    /^dist\/.*\.test\.|^(?!pages\/).*planted|\.mistakes$|\.tsbuildinfo$|(?:^|\/)\./.test(path),
  );
  return [...missing, ...strange.map((path) => `${name} would have ${path}`)];
}

/** @param components the components of all SBOMs */
export function problemsOfLicenses(components) {
  return components.flatMap(({ name, licenses }) => {
    const ids = licenses.flatMap((id) => id.replaceAll(/[()]/g, "").split(/ (?:AND|OR) /));
    const isFine = ids.length > 0 && ids.every((id) => licensesAllowed.has(id));
    return isFine ? [] : [`${name} has the licence ${ids.join(", ") || "(none)"}, which nobody has allowed`];
  });
}
