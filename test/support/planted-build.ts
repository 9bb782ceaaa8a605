import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transformSync } from "rolldown/utils";
import { packagesFolder } from "./built.js";
import { copyBuild } from "./copied-build.js";

/** For each compiled file below `cli`: code of its source, without types, and the code that replaces it. */
export type Plants = Readonly<Record<string, readonly (readonly [string, string])[]>>;

/** The compiled package with mistakes in it. */
export class PlantedBuild implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "leasehold-planted-"));
  readonly dist = join(this.#folder, "packages", "leasehold", "dist");

  constructor(plants: Plants) {
    copyBuild(this.#folder);
    for (const [file, replacements] of Object.entries(plants)) {
      let text = compiled(join(packagesFolder, "leasehold", "src", "cli", file.replace(/js$/, "ts")));
      for (const [from, to] of replacements) {
        if (!text.includes(from)) throw new Error(`this code is not in ${file}: ${from}`);
        text = text.replace(from, to);
      }
      writeFileSync(join(this.dist, "cli", file), text);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The build has short names and no white space. */
function compiled(path: string): string {
  const { code, errors } = transformSync(path, readFileSync(path, "utf8"), { target: "es2023" });
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`);
  return code;
}
