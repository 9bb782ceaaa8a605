import { createRequire } from "node:module";

/** The version of this package, from its own manifest: there is no second place to forget. */
export function packageVersion(): string {
  const manifest = createRequire(import.meta.url)("leasehold/package.json") as { version: string };
  return manifest.version;
}
