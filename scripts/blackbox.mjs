// Compiles the black box and runs it: `node scripts/blackbox.mjs [options]`. What it plays with is a copy of the product
// in dist, and of the sources a build in which mistakes can be planted, for its self-tests. Both are of this run alone,
// so that nobody who builds anew meanwhile can change them.
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const built = join(root, `dist.blackbox.${process.pid}`);
process.on("exit", () => rmSync(built, { recursive: true, force: true }));

const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
const project = ["-p", join(root, "tsconfig.blackbox.json"), "--outDir", built];
const compiled = spawnSync(process.execPath, [compiler, ...project], { stdio: "inherit" });
if (compiled.status !== 0) process.exit(1);
// The nearest package.json decides what `#faults` is: here the switches that can be turned, in the product none.
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const imports = Object.entries(manifest.imports).map(([name, path]) => [name, path.replace("/dist/", "/")]);
const planted = { ...Object.fromEntries(imports), "#faults": "./src/flease/protocol/planted-faults.js" };
writeFileSync(join(built, "package.json"), JSON.stringify({ ...manifest, imports: planted }));
cpSync(join(root, "dist"), join(built, "product", "dist"), { recursive: true });
copyFileSync(join(root, "package.json"), join(built, "product", "package.json"));

const words = ["--max-old-space-size=4096", join(built, "test", "blackbox", "main.js")];
const run = spawn(process.execPath, [...words, ...process.argv.slice(2)], { stdio: "inherit" });
// The run tidies up, and then this ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => run.kill(signal));
run.on("close", (code, signal) => process.exit(signal === null ? code : 1));
