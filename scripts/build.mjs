// Compiles each package to its dist, but only if a source is newer than the last build, so that `npm start`
// does not wait for an unnecessary build.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { shrinkFolder } from "./shrink.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const packages = readdirSync(join(root, "packages"));

/**
 * Creates `node_modules` in a copy of the packages, with links by which the copies find each other and not
 * the originals.
 */
export function linkPackages(to) {
  for (const name of packages) {
    const folder = join(to, "packages", name);
    const link = join(to, "node_modules", manifestOf(name).name);
    mkdirSync(dirname(link), { recursive: true });
    if (!existsSync(link)) symlinkSync(folder, link);
  }
}

function newestMs(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return readdirSync(path).reduce(
    (newest, name) => Math.max(newest, newestMs(join(path, name))),
    stat.mtimeMs,
  );
}

/**
 * Removes declarations that are not reachable from those of the exports: nobody can import them, and they are
 * nine out of ten.
 */
function pruneDeclarations(compiled) {
  const names = new Map(packages.map((name) => [manifestOf(name).name, name]));
  const reached = new Set();
  const next = packages.flatMap((name) =>
    Object.values(manifestOf(name).exports).flatMap(({ types = "*" }) =>
      types.includes("*") ? [] : [join(compiled, name, types.replace("./dist/", "src/"))],
    ),
  );
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    for (const [, name] of readFileSync(path, "utf8").matchAll(/(?:from |import\(|import )"([^"]+)"/g)) {
      const [, full, subpath] = /^(leasehold|@leasehold\/\w+)(\/.+)?$/.exec(name) ?? [];
      if (full !== undefined) {
        const types = manifestOf(names.get(full)).exports[`.${subpath ?? ""}`]?.types;
        if (types !== undefined) next.push(join(compiled, names.get(full), types.replace("./dist/", "src/")));
      } else if (name.startsWith(".")) next.push(join(dirname(path), name.replace(/\.js$/, ".d.ts")));
    }
  }
  for (const name of readdirSync(compiled, { recursive: true })) {
    const path = join(compiled, name);
    if (path.endsWith(".d.ts") && !reached.has(path)) rmSync(path);
  }
}

/**
 * Files of the root that are published with each package. npm packs the files in a package's folder and
 * follows no links.
 */
const alsoPublished = packages.flatMap((name) =>
  (name === "leasehold" ? ["LICENSE", "README.md", "examples"] : ["LICENSE"]).map((path) => ({
    from: join(root, path),
    to: join(root, "packages", name, path),
  })),
);

const manifestOf = (name) => JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));

/**
 * Keeps bundlers from resolving an `import()` whose argument is a variable: the package may not be installed.
 * The compiler has removed the comments for this with all others.
 */
function keepBundlersOut(compiled) {
  const magic = "/* webpackIgnore: true */ /* @vite-ignore */";
  for (const name of readdirSync(compiled, { recursive: true })) {
    if (!name.endsWith(".js")) continue;
    const path = join(compiled, name);
    const text = readFileSync(path, "utf8");
    const marked = text.replaceAll(/\bimport\((?=[A-Za-z_$])/g, `import(${magic} `);
    if (marked !== text) writeFileSync(path, marked);
  }
}

/** Runs the compiler once. Resolves with its exit code. */
async function compile(...options) {
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const words = [compiler, "-p", join(root, "tsconfig.json"), ...options];
  const [code] = await once(spawn(process.execPath, words, { stdio: "inherit" }), "close");
  return code ?? 1;
}

/** Modules that the bundle leaves out: for these, `bin/leasehold.js` loads the unbundled modules. */
const notBundled = [
  /[\\/]cli[\\/](?:up[\\/]up|completion|settings[\\/]settings-file|commands[\\/](?:status|config|doctor|health|size|peer|check|cert[\\/]cert|members[\\/]\w+))\.js$/,
  /[\\/]entry[\\/](?:etcd|metrics)\.js$|[\\/]stores[\\/](?!directory)\w+[\\/]open\.js$/,
];

/**
 * Each group becomes a file of the bundle with modules that are loaded together. Modules that the front of a
 * command, its guard and the first line need are kept out of the command's group, which is the last.
 */
const bundleGroups = [
  { name: "first", test: /[\\/]cli[\\/]common[\\/](?:signals|shortage|front)\.js$/ },
  {
    name: "guarding",
    test: /[\\/]cli[\\/]run[\\/](?:guard-\w+|gate|process-group)\.js$|[\\/]common[\\/]both-clocks\.js$/,
  },
  {
    name: "leases",
    test: /[\\/](?:lease|common|runtime)[\\/]|[\\/]cli[\\/](?:(?:common|output)[\\/]|run[\\/](?!guard\.js))|[\\/]dist[\\/]index\.js$/,
  },
];

/**
 * Bundles the command into a few CommonJS files, which Node loads in a third of the time. Optional packages
 * stay outside.
 */
async function bundleCommand(dist) {
  const out = join(dist, "bundle");
  const { version } = manifestOf("leasehold");
  const bundle = await rolldown({
    input: { main: join(dist, "cli", "main.js"), guard: join(dist, "cli", "run", "guard.js") },
    platform: "node",
    treeshake: { moduleSideEffects: true },
    // Harmless: a module that is also imported statically goes into that chunk.
    checks: { ineffectiveDynamicImport: false },
    external: [/^@leasehold\//, /^@grpc\//, /^@bufbuild\//, /^@redis\//, /^@aws-sdk\//, "aws4fetch", "pg"],
    plugins: [
      {
        name: "leasehold",
        resolveId: (id) =>
          /[\\/]commander\.js$/.test(id) ? { id: "./commander.js", external: true } : undefined,
        load(id) {
          if (/[\\/]runtime[\\/]package-version\.js$/.test(id))
            return `export const packageVersion = () => ${JSON.stringify(version)};`;
          return notBundled.some((path) => path.test(id))
            ? 'throw new Error("this is not in the bundle");'
            : undefined;
        },
      },
    ],
  });
  await bundle.write({
    dir: out,
    format: "cjs",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    codeSplitting: { groups: bundleGroups },
  });
  writeFileSync(join(out, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
}

/**
 * Copies commander next to the bundle, for the bundle and for the module that re-exports commander, so that
 * Leasehold installs no other package. Its licence requires its notice in each copy.
 */
async function includeCommander(dist) {
  const path = join(dist, "cli", "common", "commander.js");
  const bundle = await rolldown({ input: path, platform: "node" });
  await bundle.write({ file: join(dist, "bundle", "commander.js"), format: "cjs" });
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace('"commander"', '"../../bundle/commander.js"'));
  cpSync(join(root, "node_modules", "commander", "LICENSE"), join(dist, "bundle", "commander.LICENSE"));
}

/**
 * Builds a package's page (of the console or the theatre): one script, one style sheet, and the files beside
 * them.
 */
async function bundlePage(dist, packageName, name) {
  const page = join(root, "packages", packageName, "page");
  const shared = join(root, "packages", "console", "page");
  const bundle = await rolldown({
    input: join(page, `${name}.tsx`),
    platform: "browser",
    tsconfig: join(page, "tsconfig.json"),
    resolve: { extensionAlias: { ".js": [".tsx", ".ts", ".js"] } },
  });
  const out = join(dist, packageName, "src", "page");
  await bundle.write({ file: join(out, `${name}.js`), format: "esm", minify: true });
  const sheets = [join(shared, "colours.css"), join(page, `${name}.css`)];
  writeFileSync(join(out, `${name}.css`), sheets.map((path) => readFileSync(path, "utf8")).join("\n"));
  cpSync(join(page, "index.html"), join(out, "index.html"));
  cpSync(join(shared, "icon.svg"), join(out, "icon.svg"));
}

async function build() {
  for (const { from, to } of alsoPublished) cpSync(from, to, { recursive: true });
  const stamp = join(root, "packages", "leasehold", "dist", ".built");
  const builtMs = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = [
    ...packages.map((name) => join("packages", name, "src")),
    "packages/console/page",
    "packages/sim/page",
  ];
  const newest = Math.max(...[...sources, "tsconfig.json"].map((name) => newestMs(join(root, name))));
  if (newest <= builtMs) return 0;
  const fresh = join(root, `dist.${process.pid}.new`);
  try {
    // Editors show the comments of declarations. Those of the code would be more than a third of the
    // installed size.
    const codes = await Promise.all([
      compile("--outDir", fresh, "--declaration", "false", "--removeComments"),
      compile("--outDir", fresh, "--emitDeclarationOnly"),
    ]);
    if (codes.some((code) => code !== 0)) return codes[0] || codes[1];
    pruneDeclarations(fresh);
    await bundlePage(fresh, "console", "page");
    await bundlePage(fresh, "sim", "theatre");
    await includeCommander(join(fresh, "leasehold", "src"));
    await bundleCommand(join(fresh, "leasehold", "src"));
    shrinkFolder(join(fresh, "leasehold", "src"));
    keepBundlersOut(fresh);
    chmodSync(join(fresh, "leasehold", "src", "cli", "main.js"), 0o755);
    writeFileSync(join(fresh, "leasehold", "src", ".built"), "");
    // Swapped by renames, so that a process that starts meanwhile finds either the old build or the new one.
    for (const name of packages) {
      const dist = join(root, "packages", name, "dist");
      const old = join(fresh, `${name}.old`);
      if (existsSync(dist)) renameSync(dist, old);
      renameSync(join(fresh, name, "src"), dist);
    }
    return 0;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await build();
