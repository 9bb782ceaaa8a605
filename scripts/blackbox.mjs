// Compiles the black box and runs it: `node scripts/blackbox.mjs [options]`. What it plays with is a copy of the product
// in dist, and of the sources a build in which mistakes can be planted, for its self-tests. Both are of this run alone,
// so that nobody who builds anew meanwhile can change them.
import { spawn } from "node:child_process";
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compilePlanted, root } from "./planted-sources.mjs";

const built = join(root, `dist.blackbox.${process.pid}`);
process.on("exit", () => rmSync(built, { recursive: true, force: true }));

if (compilePlanted("tsconfig.blackbox.json", built) !== 0) process.exit(1);
// The nearest package.json decides what `#planted` is.
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const imports = { "#planted": "./test/planted/switches.js" };
writeFileSync(join(built, "package.json"), JSON.stringify({ ...manifest, imports }));
cpSync(join(root, "dist"), join(built, "product", "dist"), { recursive: true });
copyFileSync(join(root, "package.json"), join(built, "product", "package.json"));

const words = ["--max-old-space-size=4096", join(built, "test", "blackbox", "main.js")];
const run = spawn(process.execPath, [...words, ...process.argv.slice(2)], { stdio: "inherit" });
// The run tidies up, and then this ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => run.kill(signal));
run.on("close", (code, signal) => process.exit(signal === null ? code : 1));
