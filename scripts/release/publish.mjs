// Publishes the packages that a tag names, except those already published, so that an interrupted publication
// can be repeated.
import { run } from "./workspace.mjs";

/** A prerelease must not become `latest`. */
const distTag = (version) => (version.includes("-") ? "next" : "latest");

export function problemsOfPublishing({ tag, published }, packed, withProvenance) {
  const message = run("git", "tag", "--list", "--format=%(contents)", tag);
  const problems = packed
    .filter(({ sum }) => !message.includes(sum))
    .map(({ name, sum }) => `${name} is not what ${tag} names: ${sum}`);
  if (!withProvenance) return problems;
  problems.push(...problemsOfProvenance(published));
  if (process.env.ACTIONS_ID_TOKEN_REQUEST_URL === undefined)
    problems.push("provenance is made by CI only: push the tag, or give --no-provenance");
  return problems;
}

/** npm compares this repository with the workflow's. */
export function problemsOfProvenance(published) {
  const lacking = published.filter(({ repository }) => repository === undefined).map(({ name }) => name);
  return lacking.length === 0
    ? []
    : [`provenance needs "repository" in package.json of ${lacking.join(", ")}`];
}

export function publish(packed, { version, withProvenance, say }) {
  for (const { name, path, integrity } of packed) {
    const there = integrityAt(name, version);
    if (there !== undefined && there !== integrity)
      throw new Error(`${name}@${version} is published with other contents`);
    if (there === undefined) {
      const proof = withProvenance ? ["--provenance"] : [];
      run("npm", "publish", path, "--access", "public", "--tag", distTag(version), ...proof);
    }
    say(`${name}@${version} ${there === undefined ? "is published" : "was published before"}`);
  }
}

/** The integrity of a published version; `undefined` if it is not published. */
function integrityAt(name, version) {
  try {
    return (
      JSON.parse(run("npm", "view", `${name}@${version}`, "dist.integrity", "--json") || "null") ?? undefined
    );
  } catch (error) {
    if (/E404/.test(error.message)) return undefined;
    throw error;
  }
}
