import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { entryPoints, manifest, reachableFrom, sourceOf } from "../support/reachable.js";

/**
 * The package as a user gets it: the packed file, installed into an empty project, used from JavaScript and
 * from TypeScript.
 */

const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = join(root, "node_modules");
/** A larger package of documentation and compiled code must contain something that doesn't belong there. */
const packedBytesMax = 650_000;
/** The size of `node_modules` of a new project after the installation, in bytes of content. */
const installedBytesMax = 2_000_000;

let folder: string;
let tarball: string;
let files: string[];

function run(command: string, words: readonly string[], cwd = folder): string {
  return execFileSync(command, words, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-package-"));
  const report = pack("leasehold");
  tarball = join(folder, report.filename);
  files = report.files.map((file) => file.path);
  writeFileSync(join(folder, "package.json"), '{ "name": "consumer", "private": true, "type": "module" }');
  install(tarball);
});

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

function pack(name: string): Packed {
  const words = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const [report] = JSON.parse(run("npm", words, join(root, "packages", name))) as [Packed];
  return report;
}

function install(...what: string[]): void {
  run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", ...what]);
}

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
  test("holds the compiled code, the examples and nothing else", () => {
    const expected =
      /^(?:bin\/leasehold\.js|dist\/.+\.(?:js|d\.ts)|dist\/bundle\/commander\.LICENSE|config\.schema\.json|examples\/[\w.-]+\.mjs|(?:(?:bin|dist\/bundle)\/)?package\.json|LICENSE|[A-Z]+\.md)$/;
    expect(files.filter((path) => !expected.test(path))).toEqual([]);
    const wanted = ["dist/index.js", "dist/index.d.ts", "dist/testing/index.js", "dist/cli/main.js"];
    for (const path of [...wanted, "LICENSE", "README.md", "examples/first-lease.mjs"])
      expect(files).toContain(path);
    expect(files.filter((path) => /^dist\/.*\.test\.|planted|\.mistakes$/.test(path))).toEqual([]);
    expect(statSync(tarball).size).toBeLessThan(packedBytesMax);
  });

  test("brings no other package with it, and takes less than two megabytes", () => {
    const installed = join(folder, "node_modules");
    const packages = readdirSync(installed).filter((name) => !name.startsWith("."));
    expect(packages).toEqual(["leasehold"]);
    const sizes = readdirSync(installed, { recursive: true }).map((name) =>
      statSync(join(installed, String(name))),
    );
    const bytes = sizes.reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
    expect(bytes).toBeLessThan(installedBytesMax);
  });

  test("holds no code that its entry points do not lead to", () => {
    const reached = reachableFrom(entryPoints());
    // Generated code, and the command's bundle, which is made of the other files.
    const generated = /\/etcd\/gen\/|\/bundle\//;
    const sources = files.flatMap((path) => (/^dist\/.+\.js$/.test(path) ? [sourceOf(path)] : []));
    expect(sources.filter((path) => !reached.has(path) && !generated.test(path))).toEqual([]);
    expect(entryPoints().filter((path) => !sources.includes(path))).toEqual([]);
  });

  test("has every subpath, and no name twice except those of the conformance suites", () => {
    const subpaths = Object.keys(manifest().exports).filter(
      (path) => path !== "./package.json" && !path.includes("*"),
    );
    expect(subpaths).toEqual([
      ".",
      ...[
        "flease",
        "delta",
        "etcd",
        "membership",
        "metrics",
        "logs",
        "traces",
        "provider",
        "lease-worker",
        "testing",
        "common",
        "runtime",
        "journal",
        "cli",
      ].map((name) => `./${name}`),
    ]);
    const shared = new Set(["./common", "./runtime", "./journal", "./cli"]);
    const forUsers = subpaths.filter((path) => !shared.has(path));
    const specifiers = forUsers.map((path) => path.replace(".", "leasehold"));
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
    const { version } = JSON.parse(readFileSync(join(root, "packages/leasehold/package.json"), "utf8")) as {
      version: string;
    };
    expect(run(join(folder, "node_modules", ".bin", "leasehold"), ["--version"]).trim()).toBe(version);
  });

  test.each([
    ["with Node's types", ["node"]],
    ["without them", []],
  ])("has types that pass in a strict project, %s", (_, types) => {
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
    const others = ["flease", "delta", "etcd", "membership", "provider"].map(
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

  test("says how to install a package whose command is not there, and runs it when it is", () => {
    const command = join(folder, "node_modules", ".bin", "leasehold");
    const failing = spawnSync(command, ["sim", "--seed", "7"], { cwd: folder, encoding: "utf8" });
    expect([failing.status, failing.stderr]).toEqual([
      2,
      expect.stringContaining("npm install @leasehold/sim"),
    ]);
    const own = ["console", "core", "files", "sim"].map((name) => join(folder, pack(name).filename));
    const others = ["@bufbuild/protobuf", "bcryptjs", "jose", "saxes", "sorted-btree", "xmlchars", "yaml"];
    install(tarball, ...own, ...others.map((name) => join(modules, name)));
    expect(run(command, ["core", "--help"])).toContain("--initial-cluster-state");
    expect(run(command, ["files", "--help"])).toContain("leasehold files up");
    expect(JSON.parse(run(command, ["sim", "--seed", "7", "-o", "json"]))).toMatchObject({ runs: 1 });
    const imports =
      "import { startCore } from '@leasehold/core'; import { startFiles } from '@leasehold/files';";
    const program = `${imports} console.log(typeof startCore, typeof startFiles);`;
    expect(run(process.execPath, ["--input-type=module", "--eval", program])).toBe("function function\n");
  });
});
