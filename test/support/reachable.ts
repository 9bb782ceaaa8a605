import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly imports?: Readonly<Record<string, string>>;
}

export function manifest(): Manifest {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
}

/** `./dist/src/index.js` is compiled from `src/index.ts`. */
export function sourceOf(compiled: string): string {
  return compiled.replace(/^(?:\.\/)?dist\//, "").replace(/(?:\.d\.ts|\.js)$/, ".ts");
}

/** Where a user of the package comes in: what it exports, and its command. */
export function entryPoints({ bin, exports }: Manifest): string[] {
  const exported = Object.values(exports).flatMap((file) => (typeof file === "string" ? [] : [file.default]));
  return [...Object.values(bin), ...exported].map(sourceOf);
}

/** The text of a file below the root, or undefined. */
export type ReadSource = (path: string) => string | undefined;

export const readSource: ReadSource = (path) =>
  statSync(join(root, path), { throwIfNoEntry: false })?.isFile()
    ? readFileSync(join(root, path), "utf8")
    : undefined;

/**
 * The files that the entries lead to, themselves among them: what is imported, at once or later, for values or for
 * types, by a path or by a name of the manifest (`#planted`), and modules of processes and threads, which are named
 * in a string. A name in a comment leads nowhere.
 */
export function reachableFrom(
  entries: readonly string[],
  { imports = {} }: Pick<Manifest, "imports">,
  read: ReadSource = readSource,
): Set<string> {
  const reached = new Set<string>();
  const next = [...entries];
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    const text = reached.has(path) ? undefined : read(path);
    if (text === undefined) continue;
    reached.add(path);
    const code = text.replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, "");
    for (const [, name = ""] of code.matchAll(/"((?:\.{1,2}\/[^"\s]+\.(?:js|mjs|ts))|#[\w-]+)"/g)) {
      const named = imports[name];
      next.push(sourceOf(named ?? posix.join(posix.dirname(path), name)));
    }
  }
  return reached;
}
