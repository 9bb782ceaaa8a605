import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** TypeScript that a reader may copy: from the documentation, and from the comments of public API. */
export interface Snippet {
  /** The file and line at which it begins. */
  readonly place: string;
  readonly code: string;
  /** False if its fence has `no-run`: then only its types are checked. */
  readonly runs: boolean;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Files whose exports users see. */
const publicSources = [
  "packages/leasehold/src/index.ts",
  "packages/leasehold/src/open-options.ts",
  "packages/leasehold/src/entry",
  "packages/leasehold/src/lease/types.ts",
  "packages/leasehold/src/lease/options.ts",
  "packages/leasehold/src/lease/hints.ts",
  "packages/leasehold/src/runtime/options.ts",
  "packages/leasehold/src/flease/tcp/types.ts",
  "packages/leasehold/src/runtime/security/options.ts",
  "packages/leasehold/src/testing",
  "packages/fence/src",
  "packages/redlock/src",
];

/** All pages written by hand; `docs/api` is generated from the comments. */
export function pages(): string[] {
  const docs = namesBelow("docs", ".md").filter((path) => !path.startsWith("docs/api/"));
  return ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", ...docs];
}

export function documentationSnippets(): Snippet[] {
  return pages().flatMap((page) => fencesIn(page, sourceOf(page)));
}

export function commentSnippets(): Snippet[] {
  return publicFiles().flatMap((path) => {
    const comments = sourceOf(path).replaceAll(/^.*$/gm, (line) => (/^ *\*( |$)/.exec(line) ? line : ""));
    return fencesIn(path, comments.replaceAll(/^ *\* ?/gm, ""));
  });
}

/** Files with an `@example` that isn't a ts fence: it would be skipped here, and editors show it as prose. */
export function unfencedExamples(): string[] {
  return publicFiles().filter((path) => / @example\b.*\n(?! *\* ```ts)/.test(sourceOf(path)));
}

function publicFiles(): string[] {
  return publicSources.flatMap((path) => (path.endsWith(".ts") ? [path] : namesBelow(path, ".ts")));
}

function sourceOf(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

function namesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending) && !entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

function fencesIn(path: string, text: string): Snippet[] {
  return [...text.matchAll(/^```ts( no-run)?\n([\s\S]*?)^```$/gm)].map((match) => ({
    place: `${path}:${text.slice(0, match.index).split("\n").length + 1}`,
    code: match[2]!,
    runs: match[1] === undefined,
  }));
}
