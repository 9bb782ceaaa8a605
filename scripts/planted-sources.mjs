// Copies the sources into a folder, with every known mistake behind a switch (test/planted/plant.mjs), and
// compiles them there.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { mistakes } from "../test/planted/mistakes.mjs";
import { plant } from "../test/planted/plant.mjs";
import { linkPackages, packages, root } from "./build.mjs";

export { root };

const project = join("test", "planted", "tsconfig.json");

/**
 * Compiles the packages, `test/planted` and `test/blackbox` to the folder `to`, with the same layout as here.
 * Returns the compiler's exit code.
 */
export function compilePlanted(to) {
  const sources = `${to}.sources`;
  rmSync(sources, { recursive: true, force: true });
  rmSync(to, { recursive: true, force: true });
  try {
    const folders = [...packages.map((name) => join("packages", name, "src")), "test"];
    for (const folder of folders)
      for (const name of readdirSync(join(root, folder), { recursive: true }))
        if (/\.m?ts$|\.mjs$/.test(name) && !name.includes("node_modules")) copy(join(folder, name), sources);
        else if (name.endsWith(".mistakes")) cpSync(join(root, folder, name), join(to, folder, name));
    for (const path of ["package.json", "tsconfig.json", project])
      cpSync(join(root, path), join(sources, path));
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    // A mistake's code may contain type errors.
    const words = [compiler, "-p", join(sources, project), "--noCheck", "--outDir", to];
    const { status } = spawnSync(process.execPath, words, { stdio: "inherit" });
    if (status !== 0) return status ?? 1;
  } finally {
    rmSync(sources, { recursive: true, force: true });
  }
  // The nearest package.json defines `#planted`.
  writeFileSync(
    join(to, "package.json"),
    JSON.stringify({ type: "module", imports: { "#planted": "./test/planted/switches.js" } }),
  );
  for (const name of packages) {
    const folder = join(to, "packages", name);
    // Tests import the sources by path, and packages import each other by their exports: both must find the
    // same modules.
    symlinkSync("src", join(folder, "dist"));
    const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
    const imports = { "#planted": "./dist/planted-switches.js" };
    writeFileSync(join(folder, "package.json"), JSON.stringify({ ...manifest, imports }));
    writeFileSync(
      join(folder, "src", "planted-switches.js"),
      'export * from "../../../test/planted/switches.js";\n',
    );
  }
  linkPackages(to);
  return 0;
}

function copy(path, to) {
  const target = join(to, path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, plant(readFileSync(join(root, path), "utf8"), path, mistakes));
}
