import { copyFileSync, cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packagesFolder } from "./built.js";

const installed = fileURLToPath(new URL("../../node_modules", import.meta.url));

/**
 * Copies the build of every package to `packages` below a folder, so that the packages find each other and
 * the dependencies installed here.
 */
export function copyBuild(to: string): void {
  const modules = join(to, "node_modules");
  mkdirSync(join(modules, "@leasehold"), { recursive: true });
  for (const name of readdirSync(installed)) {
    if (name !== "leasehold" && name !== "@leasehold")
      symlinkSync(join(installed, name), join(modules, name));
  }
  for (const name of readdirSync(packagesFolder)) {
    const folder = join(to, "packages", name);
    cpSync(join(packagesFolder, name, "dist"), join(folder, "dist"), { recursive: true });
    copyFileSync(join(packagesFolder, name, "package.json"), join(folder, "package.json"));
    const link = join(modules, name === "leasehold" ? name : `@leasehold/${name}`);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(folder, link);
  }
}
