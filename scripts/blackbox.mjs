// Compiles the black box and runs it: `node scripts/blackbox.mjs [options]`. It runs a copy of the built
// product, and for its self-tests a build of the sources in which mistakes can be planted. Each run has its
// own copies, so that a build meanwhile cannot change them.
import { spawn } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { linkPackages, packages } from "./build.mjs";
import { compilePlanted, root } from "./planted-sources.mjs";

const built = join(root, `dist.blackbox.${process.pid}`);
process.on("exit", () => rmSync(built, { recursive: true, force: true }));

if (compilePlanted(built) !== 0) process.exit(1);
for (const name of packages)
  for (const part of ["dist", "package.json"])
    cpSync(join(root, "packages", name, part), join(built, "product", "packages", name, part), {
      recursive: true,
    });
linkPackages(join(built, "product"));

const words = ["--max-old-space-size=4096", join(built, "test", "blackbox", "main.js")];
const run = spawn(process.execPath, [...words, ...process.argv.slice(2)], { stdio: "inherit" });
// Passed on: the run cleans up, and this process then exits.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => run.kill(signal));
run.on("close", (code, signal) => process.exit(signal === null ? code : 1));
