import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Faults } from "../planted/switches.js";

/** The build that the processes of a run use: the product, or the build in which mistakes can be planted. */
export interface Build {
  /** The folder that holds `index.js` and `cli`. */
  readonly folder: string;
  readonly planted: readonly (keyof Faults)[];
}

/**
 * Root of the folder that `scripts/blackbox.mjs` makes for each run; this program runs compiled in its
 * `test/blackbox`.
 */
const root = fileURLToPath(new URL("../..", import.meta.url));
const plantable = join(root, "packages", "leasehold", "dist");

export const product: Build = { folder: join(root, "product", "packages", "leasehold", "dist"), planted: [] };

export function withPlanted(...planted: (keyof Faults)[]): Build {
  return { folder: plantable, planted };
}

export function libraryOf(build: Build): string {
  return join(build.folder, "index.js");
}

/** The judge is always the product's, whichever build is judged. */
export const judgePath = join(product.folder, "cli", "main.js");

/** The arguments and environment with which Node runs a program of this build. */
export function commandOf(
  build: Build,
  program: string,
  words: readonly string[],
): { readonly words: string[]; readonly env: NodeJS.ProcessEnv } {
  const env = build.planted.length === 0 ? {} : { LEASEHOLD_PLANTED: build.planted.join(",") };
  return { words: [program, ...words], env };
}

export function memberProgram(build: Build): string {
  return join(build.folder, "cli", "main.js");
}

/** The path of a program in this folder, given its name without the extension. */
export function programBeside(name: "holder" | "guard" | "files/node" | "files/client"): string {
  return fileURLToPath(new URL(`${name}.js`, import.meta.url));
}
