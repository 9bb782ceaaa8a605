// Copies the sources into a folder, with every known mistake behind a switch (test/planted/plant.mjs), and compiles them there.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { mistakes } from "../test/planted/mistakes/table.mjs";
import { plant } from "../test/planted/plant.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** Compiles what `project`, a file beside package.json, includes. Returns the compiler's exit code. */
export function compilePlanted(project, to) {
  const sources = `${to}.sources`;
  rmSync(sources, { recursive: true, force: true });
  rmSync(to, { recursive: true, force: true });
  try {
    for (const folder of ["src", "sim", "test"])
      for (const name of readdirSync(join(root, folder), { recursive: true }))
        if (/\.m?ts$|\.mjs$/.test(name)) copy(join(folder, name), sources);
    for (const name of readdirSync(root))
      if (/^(?:tsconfig.*|package)\.json$/.test(name)) cpSync(join(root, name), join(sources, name));
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    // What a mistake says may be wrong by its types, too.
    const words = [compiler, "-p", join(sources, project), "--noCheck", "--outDir", to];
    return spawnSync(process.execPath, words, { stdio: "inherit" }).status ?? 1;
  } finally {
    rmSync(sources, { recursive: true, force: true });
  }
}

function copy(path, to) {
  const target = join(to, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, plant(readFileSync(join(root, path), "utf8"), path, mistakes));
}
