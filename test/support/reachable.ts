import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Manifest {
  readonly name: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

/** The folders of the packages. */
export const packageNames = readdirSync(join(root, "packages"));

export function manifest(name = "leasehold"): Manifest {
  return JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as Manifest;
}

/**
 * The source of a compiled file: `./dist/index.js` of a package is compiled from
 * `packages/NAME/src/index.ts`.
 */
export function sourceOf(compiled: string, name = "leasehold"): string {
  const path = compiled.replace(/^(?:\.\/)?dist\//, "").replace(/(?:\.d\.ts|\.js)$/, ".ts");
  return `packages/${name}/src/${path}`;
}

/**
 * The files at which a user of the package enters: its exports, except for its inner rooms, and its command.
 */
export function entryPoints(name = "leasehold"): string[] {
  const { bin = {}, exports } = manifest(name);
  const exported = Object.values(exports).flatMap((file) => (typeof file === "string" ? [] : [file.default]));
  const workers = Object.values(exports).flatMap((file) => (typeof file === "string" ? [file] : []));
  // The command's own file exists before the packages are built, so that npm can link it.
  const commands = Object.keys(bin).map(() => "./dist/cli/main.js");
  return [...commands, ...exported, ...workers]
    .filter((path) => path.endsWith(".js") && !path.includes("*"))
    .map((path) => sourceOf(path, name));
}

/** The source file that a specifier names in one of our packages; `undefined` for other specifiers. */
export function sourceOfSpecifier(specifier: string): string | undefined {
  for (const name of packageNames) {
    const { name: full, exports } = manifest(name);
    if (specifier !== full && !specifier.startsWith(`${full}/`)) continue;
    const subpath = `.${specifier.slice(full.length)}`;
    for (const [pattern, target] of Object.entries(exports)) {
      const file = typeof target === "string" ? target : target.default;
      const [before = "", after] = pattern.split("*");
      const matches =
        after === undefined ? subpath === pattern : subpath.startsWith(before) && subpath.endsWith(after);
      if (!matches) continue;
      const star = after === undefined ? "" : subpath.slice(before.length, subpath.length - after.length);
      return sourceOf(file.replace("*", star), name);
    }
  }
  return undefined;
}

/** The text of a file, by its path below the root, or `undefined`. */
export type ReadSource = (path: string) => string | undefined;

export const readSource: ReadSource = (path) =>
  statSync(join(root, path), { throwIfNoEntry: false })?.isFile()
    ? readFileSync(join(root, path), "utf8")
    : undefined;

/**
 * The entries and all files that they lead to: imports, static or dynamic, of values or types, by path or
 * package name, and modules of processes and threads, which are named in a string. Names in comments don't
 * count. `imports` are names of the manifest (`#planted`).
 */
export function reachableFrom(
  entries: readonly string[],
  imports: Readonly<Record<string, string>> = {},
  read: ReadSource = readSource,
): Set<string> {
  const reached = new Set<string>();
  const next = [...entries];
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    const text = reached.has(path) ? undefined : read(path);
    if (text === undefined) continue;
    reached.add(path);
    const code = text.replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, "");
    for (const [, name = ""] of code.matchAll(
      /"((?:\.{1,2}\/[^"\s]+\.(?:js|mjs|ts))|#[\w-]+|@?leasehold[\w./-]*)"/g,
    )) {
      const named = imports[name] ?? sourceOfSpecifier(name);
      next.push(named ?? posix.join(posix.dirname(path), name.replace(/\.js$/, ".ts")));
    }
  }
  return reached;
}
