import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyBuild } from "./copied-build.js";

/** For each compiled file below `cli`: texts, each of which stands there, and what is to stand there instead. */
export type Plants = Readonly<Record<string, readonly (readonly [string, string])[]>>;

/** The compiled package with mistakes in it. */
export class PlantedBuild implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "leasehold-planted-"));
  readonly dist = join(this.#folder, "packages", "leasehold", "dist");

  constructor(plants: Plants) {
    copyBuild(this.#folder);
    for (const [file, replacements] of Object.entries(plants)) {
      const path = join(this.dist, "cli", file);
      let text = readFileSync(path, "utf8");
      for (const [from, to] of replacements) {
        if (!text.includes(from)) throw new Error(`this does not stand in ${file}: ${from}`);
        text = text.replace(from, to);
      }
      writeFileSync(path, text);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
