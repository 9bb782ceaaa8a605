// The files of a release, in `release/`: the packages, an SBOM for each, licences, checksums and notes.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { read, root, run } from "./workspace.mjs";

const folder = join(root, "release");

/** Packages whose code is included in ours: see `includeCommander` in `build.mjs`. */
const bundled = { leasehold: ["commander"] };

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/**
 * Packs the published packages. Each result is npm's report with `manifest`, `path`, `sbom` and `sum`: the
 * SHA-256 of the uncompressed archive. It is the same on every machine, while versions of Node compress
 * differently.
 */
export function makeArtifacts({ version, published }) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const places = published.map((manifest) => `./${manifest.folder}`);
  const reports = JSON.parse(
    run("npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...places),
  );
  const everything = readSbom();
  const packed = published.map((manifest) => {
    const report = reports.find(({ name }) => name === manifest.name);
    const path = join(folder, report.filename);
    const sbom = sbomOfPackage(manifest, everything, published);
    writeFileSync(path.replace(/tgz$/, "cdx.json"), `${JSON.stringify(sbom, null, 2)}\n`);
    return { ...report, manifest, path, sbom, sum: sha256(gunzipSync(readFileSync(path))) };
  });
  const components = componentsOf(packed);
  writeFileSync(join(folder, "LICENSES.txt"), licensesText(components));
  writeFileSync(join(folder, "NOTES.md"), notesOf(version));
  const listed = packed.flatMap(({ path }) => [path, path.replace(/tgz$/, "cdx.json")]);
  const sums = listed.map((path) => `${sha256(readFileSync(path))}  ${basename(path)}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  return { packed, components };
}

/** The message of the tag. Its signature covers the contents of the packages. */
export function tagMessage(version, packed) {
  const lines = packed.map(({ filename, sum }) => `${sum}  ${filename.replace(/tgz$/, "tar")}`);
  return `Leasehold ${version}\n\nSHA-256 of the uncompressed packages:\n${lines.join("\n")}\n`;
}

/** npm describes the whole workspace, including its build and test tools. */
function readSbom() {
  const words = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  return JSON.parse(run("npm", ...words));
}

/** Reduces the SBOM to the packages that a user of this package gets. */
function sbomOfPackage({ name, version }, everything, manifests) {
  const ours = new Map(manifests.map((each) => [`${each.name}@${version}`, each]));
  const components = new Map(everything.components.map((each) => [each["bom-ref"], each]));
  const edges = new Map(everything.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const ownBuild = edges.get(everything.metadata.component["bom-ref"]);
  const neededBy = (ref) => {
    const manifest = ours.get(ref);
    if (manifest === undefined) return edges.get(ref) ?? [];
    const isNamed = (names) => (other) => names.includes(other.slice(0, other.lastIndexOf("@")));
    return [
      ...edges.get(ref).filter(isNamed(neededNames(manifest))),
      ...ownBuild.filter(isNamed(bundled[manifest.name] ?? [])),
    ];
  };
  const subject = `${name}@${version}`;
  const reached = new Set([subject]);
  const dependencies = [];
  // Iterating over a set also visits members that are added meanwhile.
  for (const ref of reached) {
    const dependsOn = neededBy(ref);
    dependencies.push({ ref, dependsOn });
    for (const other of dependsOn) reached.add(other);
  }
  const described = [...reached].map((ref) => ({
    ...components.get(ref),
    name: ours.get(ref)?.name ?? components.get(ref).name,
  }));
  const [component, ...others] = described;
  return { ...everything, metadata: { ...everything.metadata, component }, components: others, dependencies };
}

/** Excludes optional peers, which users install by their own choice. */
function neededNames({ dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} }) {
  const peers = Object.keys(peerDependencies).filter((peer) => peerDependenciesMeta[peer]?.optional !== true);
  return [...Object.keys(dependencies), ...peers];
}

/**
 * Third-party packages in or below ours, each once: name, version, licences, and which of ours contain it.
 */
function componentsOf(packed) {
  const ours = new Set(packed.map(({ name }) => name));
  const found = new Map();
  for (const { name, sbom } of packed)
    for (const { "bom-ref": ref, name: other, version, licenses = [] } of sbom.components) {
      if (ours.has(other)) continue;
      const ids = licenses.map(({ license, expression }) => expression ?? license.id ?? license.name);
      const entry = found.get(ref) ?? { name: other, version, licenses: ids, of: [] };
      entry.of.push(name);
      found.set(ref, entry);
    }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function licensesText(components) {
  const lines = components.map(
    ({ name, version, licenses, of }) => `${name}@${version}: ${licenses.join(", ")} (of ${of.join(", ")})`,
  );
  return `Leasehold has the MIT licence. Packages that it is installed with or includes:\n\n${lines.join("\n")}\n`;
}

/** The changelog's section for this version. */
function notesOf(version) {
  const heading = new RegExp(`^## ${version.replaceAll(".", "\\.")}\\b.*$`, "m");
  const [, section = ""] = read("CHANGELOG.md").split(heading);
  return `${section.split(/^## /m)[0].trim()}\n`;
}
