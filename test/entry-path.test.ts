import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/** The tables in ARCHITECTURE.md of the files that an acquisition, and a put of the core, go through. */

const root = fileURLToPath(new URL("..", import.meta.url));
const document = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");

interface Hop {
  readonly from: string;
  readonly to: string;
  /** The file by which `from` knows `to`; `to` itself where there is no port between. */
  readonly by: string;
}

/** Of each row the file, and whom it hands the call to: `file`, or `file`, by the port `other` (or by its own). */
function rowsOf(section: string): { readonly file: string; readonly hops: readonly Hop[] }[] {
  const rows = [...section.matchAll(/^\| (\d+) \| `([^`]+)` \|[^|]*\|([^|]*)\|$/gm)];
  return rows.map(([, , file = "", next = ""]) => ({
    file,
    hops: [...next.matchAll(/`([^`]+)`(?:, by (?:(its own port)|(?:the port )?`([^`]+)`))?/g)].map(
      ([, to = "", own, by = to]) => ({ from: file, to, by: own === undefined ? by : file }),
    ),
  }));
}

/** From a heading to the next one. */
function sectionOf(heading: string): string {
  const [, section = ""] = document.split(`\n${heading}\n`);
  return section.split(/^#/m)[0] ?? "";
}

const ways = [
  {
    name: "an acquisition",
    rows: rowsOf(sectionOf("## The way of one acquisition through the code")),
    first: "lease/manager/lease-manager.ts",
    last: "flease/protocol/acceptor.ts",
    filesMax: 15,
  },
  {
    name: "a put",
    rows: rowsOf(sectionOf("### The way of a put through the code")),
    first: "core/server/grpc/unary.ts",
    last: "core/state/state.ts",
    filesMax: 12,
  },
];

/** A path below `packages`, or of a room: of the package `leasehold`, or `core/raft/raft.ts` of another one. */
function pathOf(file: string): string {
  if (file.includes("/src/")) return join(root, "packages", file);
  const [, name = "leasehold", rest = file] = /^(core|files|sim)\/(.*)$/.exec(file) ?? [];
  return join(root, "packages", name, "src", rest);
}

function imports(from: string, to: string): boolean {
  const path = pathOf(from);
  const specifier = relative(dirname(path), pathOf(to)).replace(/\.ts$/, ".js");
  const text = readFileSync(path, "utf8");
  return text.includes(` from "${specifier.startsWith(".") ? specifier : `./${specifier}`}";`);
}

function isHop({ from, to, by }: Hop): boolean {
  const knows = by === from || imports(from, by);
  return knows && (by === to || imports(to, by) || imports(by, to));
}

describe.each(ways)("the way of $name", ({ rows, first, last, filesMax }) => {
  test(`begins at ${first}, ends at ${last} and has at most ${filesMax} files, each once`, () => {
    expect(rows.map(({ file }) => existsSync(pathOf(file)))).toEqual(rows.map(() => true));
    expect(rows[0]?.file).toBe(first);
    expect(rows.at(-1)?.file).toBe(last);
    expect(new Set(rows.map(({ file }) => file)).size).toBe(rows.length);
    expect(rows.length).toBeLessThanOrEqual(filesMax);
  });

  test("goes from each file to one that it imports, or with which it shares the port between them", () => {
    const hops = rows.flatMap((row) => row.hops);
    expect(hops.length).toBeGreaterThanOrEqual(rows.length - 1);
    expect(hops.filter((hop) => !isHop(hop))).toEqual([]);
  });

  test("has each file in its place: one before it hands the call to it", () => {
    const early = rows.slice(1).filter(({ file }, index) => {
      const before = rows.slice(0, index + 1).flatMap(({ hops }) => hops.map(({ to }) => to));
      return !before.includes(file);
    });
    expect(early.map(({ file }) => file)).toEqual([]);
  });
});

test("a hop between two files that do not know each other is none", () => {
  const acceptor = "flease/protocol/acceptor.ts";
  expect(isHop({ from: "lease/manager/lease-manager.ts", to: acceptor, by: acceptor })).toBe(false);
  expect(isHop({ from: "lease/manager/lease-manager.ts", to: acceptor, by: "lease/provider.ts" })).toBe(
    false,
  );
});
