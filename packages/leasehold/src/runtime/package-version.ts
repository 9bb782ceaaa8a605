import { createRequire } from "node:module";

/** The version of this package, read from its manifest, its only source. */
export function packageVersion(): string {
  const manifest = createRequire(import.meta.url)("leasehold/package.json") as { version: string };
  return manifest.version;
}
