import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageFolder } from "./built.js";

/** For each compiled file below `cli`: texts, each of which stands there, and what is to stand there instead. */
export type Plants = Readonly<Record<string, readonly (readonly [string, string])[]>>;

/** The compiled package with mistakes in it. */
export class PlantedBuild implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "leasehold-planted-"));
  readonly dist = join(this.#folder, "dist", "src");

  constructor(plants: Plants) {
    cpSync(join(packageFolder, "dist"), join(this.#folder, "dist"), { recursive: true });
    cpSync(join(packageFolder, "package.json"), join(this.#folder, "package.json"));
    symlinkSync(join(packageFolder, "node_modules"), join(this.#folder, "node_modules"));
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
