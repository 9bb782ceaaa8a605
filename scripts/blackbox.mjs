// Compiles the black box and runs it: `node scripts/blackbox.mjs [options]`. What it plays with is a copy of the product
// as it is built, and of the sources a build in which mistakes can be planted, for its self-tests. Both are of this run alone,
// so that nobody who builds anew meanwhile can change them.
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
// The run tidies up, and then this ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => run.kill(signal));
run.on("close", (code, signal) => process.exit(signal === null ? code : 1));
