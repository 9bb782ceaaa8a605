import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packages } from "./build.mjs";

/** Writes docs/api from the types of the build. With `--check`: fails if that would change it. */

/** Exports that the packages share with each other, without a promise of stability. */
const forPackages = new Set(["./common", "./runtime", "./journal", "./cli", "./command", "./web"]);

const root = fileURLToPath(new URL("..", import.meta.url));
const tool = join(root, "scripts/api-reference");
const target = join(root, "docs/api");
const isCheck = process.argv.includes("--check");

const scratch = mkdtempSync(join(tmpdir(), "leasehold-api-"));
try {
  installTool();
  const written = write(scratch);
  if (isCheck) check(written);
  else replace(written);
} finally {
  rmSync(scratch, { recursive: true });
}

function installTool() {
  if (!existsSync(join(tool, "node_modules")))
    run("npm", ["ci", "--no-audit", "--no-fund", "--silent"], tool);
}

/** Writes the pages. */
function write(directory) {
  const entries = join(directory, "entries");
  mkdirSync(entries);
  // Names each page after its entry file.
  for (const folder of packages) {
    const { exports } = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
    for (const [subpath, { types }] of Object.entries(exports)) {
      if (types === undefined || subpath.includes("*") || forPackages.has(subpath)) continue;
      const name = subpath === "." ? folder : subpath.slice(2);
      const from = join(root, "packages", folder, types).replace(/\.d\.ts$/, ".js");
      writeFileSync(join(entries, `${name}.ts`), `export * from ${JSON.stringify(from)};\n`);
    }
  }
  const compilerOptions = {
    module: "nodenext",
    target: "es2022",
    strict: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["entries"] }));
  writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
  const options = {
    plugin: [join(tool, "node_modules/typedoc-plugin-markdown/dist/index.js")],
    entryPoints: [join(entries, "*.ts")],
    tsconfig: join(directory, "tsconfig.json"),
    out: join(directory, "out"),
    router: "module",
    name: "Leasehold",
    readme: "none",
    logLevel: "Error",
    disableSources: true,
    excludeExternals: true,
    excludePrivate: true,
    hideBreadcrumbs: true,
    parametersFormat: "table",
  };
  writeFileSync(join(directory, "typedoc.json"), JSON.stringify(options));
  run(process.execPath, [join(tool, "node_modules/typedoc/bin/typedoc")], directory);
  const out = join(directory, "out");
  return new Map(
    readdirSync(out, { recursive: true })
      .filter((name) => name.endsWith(".md"))
      .toSorted()
      .map((name) => [name, readFileSync(join(out, name), "utf8")]),
  );
}

function replace(written) {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target);
  for (const [name, text] of written) writeFileSync(join(target, name), text);
}

function check(written) {
  const there = existsSync(target) ? readdirSync(target) : [];
  const isSame = (name) => readFileSync(join(target, name), "utf8") === written.get(name);
  const stale = [...written.keys()].filter((name) => !there.includes(name) || !isSame(name));
  const extra = there.filter((name) => !written.has(name));
  if (stale.length + extra.length === 0) return;
  process.stderr.write(
    `docs/api is stale (${[...stale, ...extra].join(", ")}): npm run generate -- api, and commit it\n`,
  );
  process.exitCode = 1;
}

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ended with ${status}`);
}
