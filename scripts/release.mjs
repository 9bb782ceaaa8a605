// Makes a release, as described in CONTRIBUTING.md. All forms but the first check the packages and write
// `release/`.
//   npm run release -- version 0.2.0   sets the version everywhere
//   npm run release -- --dry-run       changes nothing else
//   npm run release                    signs a tag with the checksums of the packages
//   npm run release -- --publish       publishes the packages that the tag names: CI does so, with provenance
import {
  problemsOfLicenses,
  problemsOfManifest,
  problemsOfPacked,
  problemsOfRepository,
} from "./release/checks.mjs";
import { makeArtifacts, tagMessage } from "./release/artifacts.mjs";
import { notesOnDependencies } from "./release/dependencies.mjs";
import { problemsOfProvenance, problemsOfPublishing, publish } from "./release/publish.mjs";
import { setVersion } from "./release/version.mjs";
import { readWorkspace, run } from "./release/workspace.mjs";

const usage = "npm run release [-- version VERSION | --dry-run | --publish [--no-provenance]]";

const say = (text) => process.stdout.write(`${text}\n`);
const size = (bytes) => `${(bytes / 1_000).toFixed(1)} kB`.padStart(11);

/** Prints the number of files and their size by top-level folder. */
function show({ name, version, files, size: packed, unpackedSize }) {
  say(`\n${name}@${version}: ${files.length} files, ${size(packed).trim()} packed`);
  const folders = new Map();
  for (const { path, size: bytes } of files) {
    const place = path.includes("/") ? `${path.slice(0, path.indexOf("/"))}/` : path;
    const { count = 0, sum = 0 } = folders.get(place) ?? {};
    folders.set(place, { count: count + 1, sum: sum + bytes });
  }
  for (const [place, { count, sum }] of folders)
    say(`${size(sum)}  ${place}${place.endsWith("/") ? ` (${count} files)` : ""}`);
  say(`${size(unpackedSize)}  in all`);
}

/** Packs and checks the packages. Exits with 1 if there is a problem. */
function prepare(workspace, { isPublished, withProvenance }) {
  const { packed, components } = makeArtifacts(workspace);
  packed.forEach(show);
  say(`\nlicences of ${components.length} packages of others: release/LICENSES.txt`);
  const problems = [
    ...problemsOfRepository(workspace, { isTagged: isPublished }),
    ...workspace.manifests.flatMap((manifest) => problemsOfManifest(manifest, workspace)),
    ...packed.flatMap(({ manifest, files }) => problemsOfPacked(manifest, files)),
    ...problemsOfLicenses(components),
  ];
  if (isPublished && problems.length === 0)
    problems.push(...problemsOfPublishing(workspace, packed, withProvenance));
  if (problems.length === 0) return packed;
  say(`\nNOT ready:\n${problems.map((problem) => `- ${problem}`).join("\n")}`);
  process.exit(1);
}

function main(words) {
  const [form = "tag", ...rest] = words;
  if (form === "version" && rest.length === 1) return setVersion(rest[0]);
  const isKnown = form === "--publish" ? rest.every((word) => word === "--no-provenance") : rest.length === 0;
  if (!isKnown || !["tag", "--dry-run", "--publish"].includes(form)) {
    process.stderr.write(`${words.join(" ")}? ${usage}\n`);
    process.exit(2);
  }
  const workspace = readWorkspace();
  const { tag, version } = workspace;
  const withProvenance = !rest.includes("--no-provenance");
  const packed = prepare(workspace, { isPublished: form === "--publish", withProvenance });
  if (form === "--publish") return publish(packed, { version, withProvenance, say });
  if (form === "--dry-run") {
    for (const note of [...problemsOfProvenance(workspace.published), ...notesOnDependencies()]) say(note);
    return say(`\nready: ${tag} is not set, as this was a dry run`);
  }
  run("git", "tag", "--sign", tag, "--message", tagMessage(version, packed));
  say(
    `\n${tag} is set and signed. What is left:\n  git push origin ${tag}\nCI publishes what this tag names.`,
  );
}

main(process.argv.slice(2));
