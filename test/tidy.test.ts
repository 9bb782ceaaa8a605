import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { callSpreads } from "./support/call-spreads.js";
import { entryPoints, packageNames, reachableFrom, sourceOfSpecifier } from "./support/reachable.js";

/** Laws of style that a program can check. Each finding names its place. */

const root = fileURLToPath(new URL("..", import.meta.url));

/** The product, and the simulators that run it. */
const sources = packageNames.map((name) => `packages/${name}/src`);

/** Folders whose subfolders are rooms, too. Any other folder is one room with everything below it. */
const divided = new Set(["core", "files", "flease", "flease/tcp", "lease"]);

interface SourceFile {
  /** The path below `src`, with NAME/ before it for packages other than `leasehold`. */
  readonly path: string;
  readonly folder: string;
  readonly text: string;
  readonly lines: readonly string[];
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const files: SourceFile[] = sources
  .flatMap((name) => filesBelow(join(root, name)))
  .filter((path) => path.endsWith(".ts"))
  .map((path) => {
    const text = readFileSync(path, "utf8");
    const inside = shortened(path);
    return { path: inside, folder: folderOf(inside), text, lines: text.split("\n") };
  })
  .filter((file) => !file.path.startsWith("etcd/gen/"));
const production = files.filter(({ path }) => !path.endsWith(".test.ts"));

function shortened(path: string): string {
  return relative(root, path).replace(/^packages\/(\w+)\/src\//, (_, name: string) =>
    name === "leasehold" ? "" : `${name}/`,
  );
}

/** The room of a file. Code generated in the core is exempt from the laws. */
function folderOf(path: string): string {
  // The file with a package's exports is a room of its own.
  if (path.startsWith("shared/") || /^(?:core|files)\/index\.ts$/.test(path))
    return path.replace(/\.(?:test\.)?ts$/, "");
  for (const room of ["etcd/gen", "sim/command"]) if (path.startsWith(`${room}/`)) return room;
  const [first = ".", ...below] = dirname(path).split("/");
  let room = first;
  while (divided.has(room) && below.length > 0) room += `/${below.shift()!}`;
  return room;
}

/**
 * The rooms that a room may import from, besides itself. `.` is `packages/leasehold/src/index.ts` and the
 * types of its options.
 */
const mayImport: Record<string, readonly string[]> = {
  common: [],
  lease: ["common"],
  "lease/forms": ["common", "lease"],
  "lease/queue": ["common", "lease"],
  "lease/manager": ["common", "lease", "lease/forms", "lease/queue"],
  runtime: ["common", "lease"],
  "flease/protocol": ["common", "lease"],
  "flease/views": ["common", "flease/protocol", "lease"],
  "flease/admin": ["common", "flease/protocol", "flease/views", "lease"],
  flease: ["common", "flease/admin", "flease/protocol", "flease/views", "lease"],
  "flease/tcp/wire": ["common", "flease/protocol", "lease", "runtime"],
  "flease/tcp/security": ["common", "flease/tcp/wire", "lease", "runtime"],
  "flease/tcp/transport": [
    "common",
    "flease/protocol",
    "flease/tcp/security",
    "flease/tcp/wire",
    "lease",
    "runtime",
  ],
  "flease/tcp/views": [
    "common",
    "flease",
    "flease/protocol",
    "flease/tcp/transport",
    "flease/views",
    "lease",
    "runtime",
  ],
  "flease/tcp": [
    "common",
    "flease",
    "flease/admin",
    "flease/protocol",
    "flease/tcp/security",
    "flease/tcp/transport",
    "flease/tcp/views",
    "flease/tcp/wire",
    "flease/views",
    "lease",
    "lease/manager",
    "runtime",
  ],
  "flease/tcp/worker": [
    "common",
    "flease",
    "flease/protocol",
    "flease/tcp",
    "lease",
    "lease/manager",
    "runtime",
  ],
  "flease/stores": ["common", "delta", "flease", "flease/admin", "flease/protocol", "lease"],
  delta: ["common", "lease"],
  "core/raft": ["shared/common"],
  "core/state": ["etcd/gen", "shared/common"],
  "core/copies": ["core/raft", "core/state"],
  "core/replica": ["core/copies", "core/raft", "core/state", "etcd/gen", "shared/common"],
  "core/journal": ["core/raft", "shared/common", "shared/journal"],
  "core/http2": ["shared/common"],
  "core/host": ["core/raft", "core/replica", "core/state", "etcd/gen", "shared/common"],
  "core/server": [
    "core/copies",
    "core/host",
    "core/http2",
    "core/journal",
    "shared/journal",
    "core/raft",
    "core/replica",
    "core/state",
    "entry",
    "etcd/gen",
    "shared/common",
    "shared/runtime",
  ],
  etcd: ["common", "etcd/gen", "lease", "membership", "runtime"],
  metrics: ["common", "flease/tcp", "lease", "runtime"],
  logs: ["common", "lease", "runtime"],
  traces: ["lease", "lease/manager"],
  "files/logs": ["shared/runtime"],
  files: ["shared/common"],
  "files/disk": ["files", "shared/common", "shared/journal", "shared/runtime"],
  "files/users": ["files", "files/logs", "shared/common", "shared/runtime"],
  "files/webdav": ["files", "files/logs", "files/users", "shared/common", "shared/runtime"],
  "files/s3": ["files", "files/logs", "files/names", "files/webdav", "shared/common", "shared/runtime"],
  "files/metrics": ["entry", "files"],
  "files/names": ["shared/common"],
  "files/protocol": ["files", "files/names", "shared/common"],
  "files/contents": ["files", "files/names", "files/protocol", "shared/common"],
  "files/tree": ["files", "files/contents", "files/names", "files/protocol", "shared/common"],
  "files/node": ["files", "files/logs", "files/protocol", "files/tree", "shared/common", "shared/runtime"],
  membership: ["common", "lease", "lease/manager"],
  stores: ["common", "delta", "flease/protocol", "flease/stores", "lease", "lease/manager", "runtime"],
  testing: ["common", "lease", "lease/manager"],
  entry: [
    "common",
    "delta",
    "etcd",
    "flease/tcp",
    "flease/tcp/security",
    "flease/tcp/worker",
    "lease",
    "lease/manager",
    "logs",
    "membership",
    "metrics",
    "runtime",
    "stores",
    "testing",
    "traces",
  ],
  ".": [
    "common",
    "delta",
    "entry",
    "etcd",
    "flease/tcp",
    "flease/tcp/security",
    "lease",
    "runtime",
    "stores",
    "testing",
  ],
  cli: [
    ".",
    "common",
    "entry",
    "etcd",
    "flease/tcp",
    "flease/tcp/security",
    "flease/views",
    "lease",
    "logs",
    "metrics",
    "runtime",
    "stores",
    "testing",
  ],
  sim: [
    "common",
    "core/copies",
    "core/host",
    "core/raft",
    "core/replica",
    "core/state",
    "delta",
    "etcd",
    "etcd/gen",
    "files",
    "files/protocol",
    "files/tree",
    "flease",
    "flease/admin",
    "flease/protocol",
    "flease/stores",
    "flease/views",
    "lease",
    "lease/manager",
    "shared/common",
    "testing",
  ],
  console: [".", "shared/cli", "shared/common", "shared/runtime"],
  docs: ["console", "shared/cli", "shared/common", "shared/runtime"],
  gateway: [".", "entry", "shared/cli", "shared/common", "shared/runtime"],
  "sim/command": ["console", "sim", "shared/cli", "shared/runtime", "testing"],
  "etcd/gen": [],
  "core/index": ["core/server", "shared/runtime"],
  "files/index": [
    "files",
    "files/disk",
    "files/node",
    "files/s3",
    "files/users",
    "files/webdav",
    "shared/runtime",
  ],
  "core/command": ["core/index", "core/server", "shared/cli", "shared/common", "shared/runtime"],
  "files/command": [
    ".",
    "files",
    "files/disk",
    "files/metrics",
    "files/logs",
    "files/node",
    "files/s3",
    "files/users",
    "files/webdav",
    "shared/cli",
    "shared/common",
    "shared/runtime",
  ],
  "shared/common": ["common", "lease"],
  "shared/runtime": ["metrics", "runtime"],
  "shared/cli": ["cli"],
  journal: [],
  fence: [],
  redlock: ["."],
  "shared/journal": ["journal"],
};

/**
 * Protocol folders are functions of their inputs: the same code runs on the real host and in a simulation.
 */
const pureFolders = new Set([
  "membership",
  "common",
  "lease",
  "lease/queue",
  "lease/manager",
  "flease",
  "flease/protocol",
  "flease/views",
  "flease/admin",
  "flease/stores",
  "sim",
  "delta",
  "files",
  "files/contents",
  "files/names",
  "files/protocol",
  "files/tree",
  "core/raft",
  "core/state",
  "core/copies",
  "core/replica",
  "core/host",
  "core/http2",
  "gateway/rights",
  "gateway/sessions",
  "gateway/watch",
]);
/** The judge of histories is a function of the journals, so it is pure as well. */
const isPure = ({ path, folder }: SourceFile): boolean =>
  pureFolders.has(folder) || path.startsWith("testing/history/");
const ambient =
  /\b(?:Date\.now|performance\.|Math\.random|setTimeout|setInterval|setImmediate|process\.|Buffer\.|new Date\b|(?:from|import) ?\(?"node:)/;

function importsOf(file: SourceFile): string[] {
  const code = file.text.replaceAll(/^\s*(?:\*|\/\/|\/\*).*$/gm, "");
  const named = /(?:from|import) "(\.[^"]*|@?leasehold[^"]*)"|import\("(\.[^"]*|@?leasehold[^"]*)"\)/g;
  return [...code.matchAll(named)].map((match) => match[1] ?? match[2]!);
}

function manifestOf(file: SourceFile): Record<"dependencies" | "peerDependencies", object | undefined> {
  const path = pathFromRoot(file).replace(/src\/.*/, "package.json");
  return JSON.parse(readFileSync(join(root, path), "utf8")) as ReturnType<typeof manifestOf>;
}

function pathFromRoot({ path }: SourceFile): string {
  const [first = "", ...rest] = path.split("/");
  const isAlone = first !== "leasehold" && packageNames.includes(first);
  return isAlone ? `packages/${first}/src/${rest.join("/")}` : `packages/leasehold/src/${path}`;
}

/** The sources from which the compiler makes `dist`. */
const built = production.map(pathFromRoot).filter((path) => !isExcluded(path));

function isExcluded(path: string): boolean {
  const { exclude } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8")) as { exclude: string[] };
  return exclude.some((pattern) => {
    const form = pattern
      .replaceAll(".", "\\.")
      .replaceAll("**/", "(?:.*/)?")
      .replaceAll(/(?<!\.)\*/g, "[^/]*");
    return new RegExp(`^${form}(?:/|$)`).test(path);
  });
}

function pathOfImport(file: SourceFile, specifier: string): string {
  const named = sourceOfSpecifier(specifier);
  if (named !== undefined) return shortened(join(root, named));
  const folder = dirname(join(root, pathFromRoot(file)));
  return shortened(resolve(folder, specifier)).replace(/\.js$/, ".ts");
}

/** Rooms with comments wider than 110 columns: this list only shrinks. */
const wideComments = ["flease/stores", "delta", "core", "etcd", "entry", "sim"];

/** Rooms with constants in UPPER_SNAKE_CASE: this list only shrinks. */
const shoutedConstants = ["cli", "flease/tcp"];

type Imports = ReadonlyMap<string, ReadonlySet<string>>;

function importsAmong(among: readonly SourceFile[]): Imports {
  return new Map(
    among.map((file) => [
      file.path,
      new Set(importsOf(file).map((specifier) => pathOfImport(file, specifier))),
    ]),
  );
}

/** The folder of a file. The file with a package's exports is a place of its own, above the folders. */
const placeOf = (path: string): string => (/^(?:core|files)\/index\.ts$/.test(path) ? path : dirname(path));

/** The same between the folders of the files. */
function importsOfFolders(among: readonly SourceFile[]): Imports {
  const folders = new Map<string, Set<string>>();
  for (const [path, imported] of importsAmong(among)) {
    const folder = placeOf(path);
    const others = folders.get(folder) ?? new Set();
    for (const other of imported) if (placeOf(other) !== folder) others.add(placeOf(other));
    folders.set(folder, others);
  }
  return folders;
}

/** One line for each cycle that a walk along the imports closes. */
function circlesIn(imports: Imports): string[] {
  const circles: string[] = [];
  const done = new Set<string>();
  const walk = (place: string, way: readonly string[]): void => {
    const begin = way.indexOf(place);
    if (begin >= 0) circles.push([...way.slice(begin), place].join(" -> "));
    if (begin >= 0 || done.has(place)) return;
    for (const next of imports.get(place) ?? []) if (imports.has(next)) walk(next, [...way, place]);
    done.add(place);
  };
  for (const place of imports.keys()) walk(place, []);
  return circles;
}

/** Lines in which pure files, or files that they import in any way, use the environment directly. */
function impureLines(among: readonly SourceFile[]): string[] {
  const byPath = new Map(among.map((file) => [file.path, file]));
  const reached = new Set(among.filter(isPure));
  for (const file of reached)
    for (const specifier of importsOf(file)) {
      const next = byPath.get(pathOfImport(file, specifier));
      if (next !== undefined) reached.add(next);
    }
  return [...reached].flatMap((file) => findLines(file, (line) => ambient.test(withoutComment(line))));
}

const isIn =
  (rooms: readonly string[]) =>
  ({ path }: SourceFile): boolean =>
    rooms.some((room) => path.startsWith(`${room}/`));

describe("the folders", () => {
  test("every folder of the packages is known here", () => {
    expect([...new Set(files.map((file) => file.folder))].filter((folder) => !(folder in mayImport))).toEqual(
      [],
    );
  });

  test("imports point one way only", () => {
    const wrong = production.flatMap((file) =>
      importsOf(file)
        .map((specifier) => ({ specifier, folder: folderOf(pathOfImport(file, specifier)) }))
        .filter(({ folder }) => folder !== file.folder && !mayImport[file.folder]!.includes(folder))
        .map(({ specifier }) => `${file.path} imports ${specifier}`),
    );
    expect(wrong).toEqual([]);
  });

  test("no files import each other in a cycle, types included", () => {
    expect(circlesIn(importsAmong(production))).toEqual([]);
  });

  test("no folders import each other in a cycle, types included", () => {
    expect(circlesIn(importsOfFolders(production))).toEqual([]);
  });

  test("only the simulators and tests import inner rooms of other packages", () => {
    const reaching = production
      .filter(({ path }) => !path.startsWith("sim/"))
      .flatMap((file) => findLines(file, (line) => /"(?:@leasehold\/\w+|leasehold)\/inner\//.test(line)));
    expect(reaching).toEqual([]);
  });

  test("files import only packages that their own package depends on", () => {
    const bare = /^(?:import|export|\}).*\bfrom "((?:@[^/"]+\/)?[^."#/][^"/]*)/;
    const found = production.flatMap((file) => {
      const { dependencies, peerDependencies } = manifestOf(file);
      const names = file.lines.flatMap((line) => bare.exec(line)?.[1] ?? []);
      return names
        .filter(
          (name) =>
            !isBuiltin(name) && name !== "leasehold" && !(name in { ...dependencies, ...peerDependencies }),
        )
        .map((name) => `${file.path}: ${name}`);
    });
    // The build replaces this file by commander itself.
    expect(found).toEqual(["cli/common/commander.ts: commander"]);
  });

  test("protocol folders are pure, and so is all that they import: no sockets, clocks, randomness, timers or node: modules", () => {
    expect(impureLines(production)).toEqual([]);
  });

  test("no file is dead: every built file is reachable from a package's exports or its command", () => {
    const reached = reachableFrom(packageNames.flatMap((name) => entryPoints(name)));
    expect(built.filter((path) => !reached.has(path))).toEqual([]);
  });

  test("a file that is not built is used by a test", () => {
    const tests = [...sources, "test"].flatMap((name) => filesBelow(join(root, name)));
    const isTest = (path: string) => path.startsWith("test/") || path.endsWith(".test.ts");
    const from = tests.map((path) => relative(root, path)).filter(isTest);
    const reached = reachableFrom([...from, "vitest.config.ts"]);
    const unbuilt = production.map(pathFromRoot).filter((path) => !built.includes(path));
    expect(unbuilt.length).toBeGreaterThan(0);
    expect(unbuilt.filter((path) => !reached.has(path))).toEqual([]);
  });
});

describe("the files", () => {
  test("have comments of at most 110 columns", () => {
    const mended = files.filter((file) => !isIn(wideComments)(file));
    expect(mended.flatMap((file) => findLines(file, isWideComment))).toEqual([]);
  });

  test("write their constants in camelCase, like all names of values", () => {
    const mended = production.filter((file) => !isIn(shoutedConstants)(file));
    const shouted = /^\s*(?:export )?const [A-Z][A-Z0-9]*_[A-Z0-9_]+\b/;
    expect(mended.flatMap((file) => findLines(file, (line) => shouted.test(line)))).toEqual([]);
  });

  test("have functions of at most 70 lines", () => {
    expect(production.flatMap(longFunctions)).toEqual([]);
  });

  test("spread no list into the arguments of a call: a long one overflows the stack (`common/lists.ts`)", () => {
    const wrong = production.flatMap(({ path, text }) =>
      callSpreads(text).map(({ line, code }) => `${path}:${line}: ${code}`),
    );
    expect(wrong).toEqual([]);
  });

  test("read the system's clock together with the steady one (`common/both-clocks.ts`), unless no other is needed", () => {
    const may = new Set(["common/both-clocks.ts", "flease/tcp/discovery.ts"]);
    const readers = production.filter(({ path, folder }) => folder !== "testing" && !may.has(path));
    expect(readers.flatMap((file) => findLines(file, (line) => /\.wallMs\(\)/.test(line)))).toEqual([]);
  });

  test("use no `any`, suppress no errors, and have no TODO", () => {
    const forbidden =
      /\bas any\b|: any\b|<any>|@ts-ignore|@ts-expect-error|@ts-nocheck|\bTODO\b|\bFIXME\b|\bXXX\b/;
    expect(files.flatMap((file) => findLines(file, (line) => forbidden.test(line)))).toEqual([]);
  });

  test("export no key as a JWK: Node 20 may hang (`flease/tcp/security/incarnation-key.ts`)", () => {
    const exported = /\.export\(\{ format: "jwk"|\bexportJWK\b/;
    expect(production.flatMap((file) => findLines(file, (line) => exported.test(line)))).toEqual([]);
  });

  test("of core/server/wire don't mention etcd or the services: another protocol could use them", () => {
    const wire = production.filter(({ path }) => path.startsWith("core/server/wire/"));
    expect(wire.length).toBeGreaterThan(20);
    const other =
      /etcd|from "(?:\.\.\/)+(?:api|auth|backup|disk|host|peers|raft|replica|state\/(?!steps\.js))/i;
    expect(wire.flatMap((file) => findLines(file, (line) => other.test(line)))).toEqual([]);
  });

  test("name no package registry", () => {
    const tracked = [
      ...files.map((file) => join(root, pathFromRoot(file))),
      ...["package.json", "package-lock.json", "README.md"].map((name) => join(root, name)),
    ];
    const hosts = new RegExp(["registry", "npmjs"].join("\\."));
    expect(tracked.filter((path) => hosts.test(readFileSync(path, "utf8")))).toEqual([]);
  });
});

/** An invented file on which to try a law. */
const file = (path: string, text: string): SourceFile => ({
  path,
  folder: folderOf(path),
  text,
  lines: text.split("\n"),
});

describe("the law of purity", () => {
  const impure = 'import { readFileSync } from "node:fs";';
  const among = (importer: SourceFile) => [
    importer,
    file("runtime/between.ts", 'import { readFileSync } from "./impure.js";'),
    file("runtime/impure.ts", impure),
    file("runtime/nobodys.ts", impure),
  ];

  test.each([
    ["a value", 'import { a } from "../runtime/impure.js";'],
    ["a type alone", 'import type {\n  A,\n} from "../runtime/impure.js";'],
    ["a file between", 'import { a } from "../runtime/between.js";'],
    ["an import when it is needed", 'const a = () => import("../runtime/impure.js");'],
    ["an export", 'export * from "../runtime/impure.js";'],
    ["an import for its effects", 'import "../runtime/impure.js";'],
  ])("finds a node: module that a pure file reaches by %s", (_, text) =>
    expect(impureLines(among(file("lease/a.ts", text)))).toEqual([`runtime/impure.ts:1: ${impure}`]),
  );

  test.each(['import "node:fs";', 'const fs = () => import("node:fs");', 'export * from "node:fs";'])(
    "finds %s",
    (text) => expect(impureLines([file("lease/a.ts", text)])).toEqual([`lease/a.ts:1: ${text}`]),
  );

  test("lets a node: module pass that no pure file reaches", () =>
    expect(impureLines(among(file("lease/a.ts", "")))).toEqual([]));
});

describe("the law of cycles", () => {
  const two = [file("lease/a.ts", 'import type { B } from "./b.js";'), file("lease/b.ts", "")];

  test("two files of which one imports the other make no cycle", () =>
    expect(circlesIn(importsAmong(two))).toEqual([]));

  test("a cycle of three that a type closes is found, once", () => {
    const three = [two[0]!, file("lease/b.ts", 'import { c } from "../runtime/c.js";')];
    const closing = file("runtime/c.ts", 'import type {\n  A,\n} from "../lease/a.js";');
    expect(circlesIn(importsAmong([...three, closing]))).toEqual([
      "lease/a.ts -> lease/b.ts -> runtime/c.ts -> lease/a.ts",
    ]);
    expect(circlesIn(importsOfFolders([...three, closing]))).toEqual(["lease -> runtime -> lease"]);
  });
});

describe("the law of dead files", () => {
  const sources: Record<string, string> = {
    "src/index.ts": 'export { a } from "./a.js"; const b = () => import("./b.js");',
    "src/a.ts": 'import type { T } from "./types.js"; import { faults } from "#faults";',
    "src/b.ts": 'const worker = new Worker(new URL("./worker.js", import.meta.url));\n// as "./comment.js"',
    "src/types.ts": "",
    "src/worker.ts": 'import "../sim/world.js";',
    "src/faults.ts": "",
    "src/comment.ts": "",
    "src/dead.ts": 'import "./index.js";',
    "src/dead.test.ts": 'import "./dead.js";',
    "sim/world.ts": "",
  };
  const imports = { "#faults": "src/faults.ts" };
  const reached = reachableFrom(["src/index.ts"], imports, (path) => sources[path]);

  test("finds files that nothing imports, or only a test or a comment names", () => {
    const dead = ["src/comment.ts", "src/dead.ts", "src/dead.test.ts"];
    expect(Object.keys(sources).filter((path) => !reached.has(path))).toEqual(dead);
  });
});

describe("the law of spreads", () => {
  test.each([
    "list.push(...more);",
    "Math.max(0, ...names.map(cellsOf))",
    "new Parts(...parts)",
    "String.fromCharCode(...bytes.subarray(0, 9))",
    "list.push(\n  ...found,\n)",
    "say(`${list.push(...more)}`)",
    'const quoted = /["(]/; f(...list)',
    "String.fromCharCode.apply(null, bytes)",
  ])("finds %s", (text) => expect(callSpreads(text)).toHaveLength(1));

  test.each([
    "[...one, ...other]",
    "f({ ...fields }, [...list])",
    "function f(...names: string[]) {}",
    "const f = (...names) => 1",
    "open(...few(endpoints), options)",
    "// f(...list)",
    '"f(...list)"',
    "`f(...list) ${one} f(...list)`",
  ])("lets %s pass", (text) => expect(callSpreads(text)).toEqual([]));
});

test.each(["cli/main.ts", "cli/run/guard.ts", "cli/up/worker.ts"])(
  "%s, which starts a process, loads nothing before it holds the signals",
  (path) => {
    const { text = "" } = production.find((file) => file.path === path) ?? {};
    const imports = [...text.matchAll(/^(?:import|export)\b(?!\().*"(.*)"/gm)].map(([, from]) => from);
    expect(imports.map((from) => from?.replace("../", "./"))).toEqual(["./common/signals.js"]);
    expect(text).toMatch(/;\n\n(?:\/\/.*\n)?holdSignals\(\);\n/);
  },
);

function findLines(file: SourceFile, wrong: (line: string) => boolean): string[] {
  return file.lines.flatMap((line, index) =>
    wrong(line) ? [`${file.path}:${index + 1}: ${line.trim()}`] : [],
  );
}

function isWideComment(line: string): boolean {
  return /^\s*(?:\*|\/\/|\/\*)/.test(line) && line.length > 110;
}

function withoutComment(line: string): string {
  return /^\s*(?:\*|\/\/|\/\*)/.test(line) ? "" : line.replace(/\/\/.*$/, "");
}

/**
 * Functions and methods by the formatter's layout: from a header that opens a block to the brace at its
 * indentation.
 */
function longFunctions(file: SourceFile): string[] {
  const header =
    /^(\s*)(?:export )?(?:default )?(?:static )?(?:async )?(?:function\b.*|[#\w]+\(.*\).*|(?:const|readonly) [#\w]+ = .*=>) ?\{$/;
  return file.lines.flatMap((line, index) => {
    const indentation = header.exec(line)?.[1];
    if (indentation === undefined || /^\s*(?:if|for|while|switch|describe|test)\b/.test(line)) return [];
    const length = file.lines.slice(index).findIndex((later) => later.startsWith(`${indentation}}`));
    return length > 70 ? [`${file.path}:${index + 1} is ${length} lines long`] : [];
  });
}
