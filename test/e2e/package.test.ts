import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { entryPoints, manifest, reachableFrom, sourceOf } from "../support/reachable.js";

/** What a stranger gets: the packed file, installed into an empty project, used from JavaScript and from TypeScript. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = join(root, "node_modules");
/** A package of documentation and compiled code that is larger has something in it that does not belong there. */
const packedBytesMax = 1_300_000;
/** What an own project has in `node_modules` after it has installed Leasehold, in bytes of content. */
const installedBytesMax = 5_400_000;

let folder: string;
let tarball: string;
let files: string[];

function run(command: string, words: readonly string[], cwd = folder): string {
  return execFileSync(command, words, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-package-"));
  const packed = run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], root);
  const [report] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  tarball = join(folder, report.filename);
  files = report.files.map((file) => file.path);
  writeFileSync(join(folder, "package.json"), '{ "name": "consumer", "private": true, "type": "module" }');
  // Without a network: the dependencies come from where this repository has them.
  const dependencies = ["commander", "saxes", "sorted-btree", "xmlchars"].map((name) => join(modules, name));
  run("npm", [
    "install",
    "--offline",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    tarball,
    ...dependencies,
  ]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = `
import { open, startMember, LeaseLostError, errorCodes } from "leasehold";
import { MemoryCluster, runConformance } from "leasehold/testing";

const leases = await open("memory:consumer");
const lease = await leases.acquire("a");
lease.assertHeld(100);
await lease.release();
await leases.close();

const cluster = new MemoryCluster();
const held = await cluster.open("one").acquire("a");
cluster.lose("a");
try {
  held.assertHeld();
} catch (error) {
  if (error instanceof LeaseLostError) console.log(error.code, error.reason, error.code in errorCodes);
}
await cluster.close();
console.log(typeof startMember, typeof runConformance);
`;
const printed = "LEASE_LOST clock-fault true\nfunction function\n";

describe("the package", () => {
  test("holds the compiled code, the documentation and nothing else", () => {
    const expected =
      /^(?:dist\/.+\.(?:js|d\.ts)|docs\/[\w-]+\.md|docs\/pictures\/[\w-]+\.svg|package\.json|LICENSE|[A-Z]+\.md)$/;
    expect(files.filter((path) => !expected.test(path))).toEqual([]);
    for (const path of [
      "dist/src/index.js",
      "dist/src/index.d.ts",
      "dist/src/testing/index.js",
      "dist/src/cli/main.js",
    ])
      expect(files).toContain(path);
    expect(files.filter((path) => /\.test\.|planted/.test(path))).toEqual([]);
    expect(statSync(tarball).size).toBeLessThan(packedBytesMax);
  });

  test("brings little with it: three packages, of which one needs one more", () => {
    const installed = join(folder, "node_modules");
    const packages = readdirSync(installed).filter((name) => !name.startsWith("."));
    expect(packages).toEqual(["commander", "leasehold", "saxes", "sorted-btree", "xmlchars"]);
    const sizes = readdirSync(installed, { recursive: true }).map((name) =>
      statSync(join(installed, String(name))),
    );
    const bytes = sizes.reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
    expect(bytes).toBeLessThan(installedBytesMax);
  });

  test("holds no code that its entry points do not lead to", () => {
    const reached = reachableFrom(entryPoints(manifest()), manifest());
    const generated = /^src\/core\/gen\//;
    const sources = files.filter((path) => /^dist\/.+\.js$/.test(path)).map(sourceOf);
    expect(sources.filter((path) => !reached.has(path) && !generated.test(path))).toEqual([]);
    expect(entryPoints(manifest()).filter((path) => !sources.includes(path))).toEqual([]);
  });

  test("has every subpath, and each name once; both suites stand where stores and grounds are added, too", () => {
    const subpaths = Object.keys(manifest().exports).filter((path) => path !== "./package.json");
    expect(subpaths).toEqual([
      ".",
      ...[
        "flease",
        "delta",
        "etcd",
        "core",
        "files",
        "membership",
        "provider",
        "lease-worker",
        "testing",
      ].map((name) => `./${name}`),
    ]);
    const specifiers = subpaths.map((path) => path.replace(".", "leasehold"));
    const listing = `const all = [];
      for (const name of ${JSON.stringify(specifiers)}) all.push(...Object.keys(await import(name)));
      console.log(all.filter((name, index) => all.indexOf(name) !== index).sort().join(" "));`;
    expect(run(process.execPath, ["--input-type=module", "--eval", listing]).trim()).toBe(
      "conformanceCases runConformance",
    );
  });

  test("works from plain JavaScript", () => {
    writeFileSync(join(folder, "plain.mjs"), program);
    expect(run(process.execPath, ["plain.mjs"])).toBe(printed);
  });

  test("needs nothing but Node when only the library is used", () => {
    const bare = join(folder, "bare");
    mkdirSync(join(bare, "node_modules", "leasehold"), { recursive: true });
    run("tar", ["xzf", tarball, "--strip-components=1", "-C", join(bare, "node_modules", "leasehold")]);
    writeFileSync(join(bare, "plain.mjs"), program);
    expect(run(process.execPath, ["plain.mjs"], bare)).toBe(printed);
  });

  test("has a command that starts", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(run(join(folder, "node_modules", ".bin", "leasehold"), ["--version"]).trim()).toBe(version);
  });

  test.each([
    ["with Node's types", ["node"]],
    ["without them", []],
  ])("has types that hold in a strict project, %s", (_, types) => {
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      target: "es2023",
      module: "nodenext",
      lib: ["es2023", "esnext.disposable", "dom"],
      types,
      typeRoots: [join(modules, "@types")],
      outDir: "out",
    };
    const others = ["flease", "delta", "etcd", "core", "membership", "provider"].map(
      (name) => `import "leasehold/${name}";\n`,
    );
    writeFileSync(join(folder, "typed.ts"), others.join("") + program);
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions: strict, files: ["typed.ts"] }),
    );
    run(process.execPath, [join(modules, "typescript", "bin", "tsc"), "-p", "."]);
    expect(run(process.execPath, [join("out", "typed.js")])).toBe(printed);
  });
});
