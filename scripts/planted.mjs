// Compiles the protocol, its simulator and its explorer with the mistakes that only test builds can plant,
// and runs a program of test/planted with them: `node scripts/planted.mjs PROGRAM [options]`.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { compilePlanted, root } from "./planted-sources.mjs";

const built = join(root, "dist-planted");
const [program, ...options] = process.argv.slice(2);
const node = (...words) => spawnSync(process.execPath, words, { stdio: "inherit" }).status ?? 1;

const compiled = compilePlanted(built);
if (compiled !== 0) process.exit(compiled);
process.exit(node("--max-old-space-size=8192", join(built, "test", "planted", `${program}.js`), ...options));
