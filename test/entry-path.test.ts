import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/**
 * The tables in ARCHITECTURE.md of the files that an acquisition, a put of the core, and a change of a file
 * pass through.
 */

const root = fileURLToPath(new URL("..", import.meta.url));
const document = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");

interface Hop {
  readonly from: string;
  readonly to: string;
  /**
   * The port through which `from` calls `to`, or the file that connects them; `to` itself if there is
   * neither.
   */
  readonly by: string;
}

/**
 * Parses the rows of a table: the file of each, and the files that it hands the call to. A cell has `file`,
 * or `file`, by `other`, where `other` is the port between the two files or the file that connects them ("its
 * own port" stands for the row's own file). The head of the table names the folder of the paths.
 */
function rowsOf(section: string): { readonly file: string; readonly hops: readonly Hop[] }[] {
  const [, folder = ""] = /^\| +\| file below `([^`]+)` \|/m.exec(section) ?? [];
  const below = (path: string) => `${folder}/${path}`;
  const rows = [...section.matchAll(/^\| (\d+) \| `([^`]+)` \|[^|]*\|([^|]*)\|$/gm)];
  return rows.map(([, , file = "", next = ""]) => ({
    file: below(file),
    hops: [...next.matchAll(/`([^`]+)`(?:, by (?:(its own port)|(?:the port )?`([^`]+)`))?/g)].map(
      ([, to = "", own, by = to]) => ({
        from: below(file),
        to: below(to),
        by: below(own === undefined ? by : file),
      }),
    ),
  }));
}

/** The text from a heading to the next heading. */
function sectionOf(heading: string): string {
  const [, section = ""] = document.split(`\n${heading}\n`);
  return section.split(/^#/m)[0] ?? "";
}

const ways = [
  {
    name: "an acquisition",
    rows: rowsOf(sectionOf("## The way of an acquisition")),
    first: "packages/leasehold/src/lease/manager/lease-manager.ts",
    last: "packages/leasehold/src/flease/protocol/acceptor.ts",
  },
  {
    name: "a put",
    rows: rowsOf(sectionOf("## The way of a put")),
    first: "packages/core/src/server/wire/port.ts",
    last: "packages/core/src/state/state.ts",
  },
  {
    name: "a file",
    rows: rowsOf(sectionOf("## The way of a file")),
    first: "packages/files/src/tree/named-files.ts",
    last: "packages/files/src/disk/directory-store.ts",
  },
];

function imports(from: string, to: string): boolean {
  const specifier = relative(dirname(from), to).replace(/\.ts$/, ".js");
  const text = readFileSync(join(root, from), "utf8");
  return text.includes(` from "${specifier.startsWith(".") ? specifier : `./${specifier}`}";`);
}

function isHop({ from, to, by }: Hop): boolean {
  if (imports(by, from) && imports(by, to)) return true;
  const knows = by === from || imports(from, by);
  return knows && (by === to || imports(to, by) || imports(by, to));
}

describe.each(ways)("the way of $name", ({ rows, first, last }) => {
  test(`begins at ${first}, ends at ${last} and has each file once`, () => {
    expect(rows.map(({ file }) => existsSync(join(root, file)))).toEqual(rows.map(() => true));
    expect(rows[0]?.file).toBe(first);
    expect(rows.at(-1)?.file).toBe(last);
    expect(new Set(rows.map(({ file }) => file)).size).toBe(rows.length);
  });

  test("goes from each file to one that it imports, or with which it shares the port between them", () => {
    const hops = rows.flatMap((row) => row.hops);
    expect(hops.length).toBeGreaterThanOrEqual(rows.length - 1);
    expect(hops.filter((hop) => !isHop(hop))).toEqual([]);
  });

  test("has each file after one that hands the call to it", () => {
    const early = rows.slice(1).filter(({ file }, index) => {
      const before = rows.slice(0, index + 1).flatMap(({ hops }) => hops.map(({ to }) => to));
      return !before.includes(file);
    });
    expect(early.map(({ file }) => file)).toEqual([]);
  });
});

test("two files that don't know each other make no hop", () => {
  const waist = "packages/leasehold/src/lease";
  const from = `${waist}/manager/lease-manager.ts`;
  const to = "packages/leasehold/src/flease/protocol/acceptor.ts";
  expect(isHop({ from, to, by: to })).toBe(false);
  expect(isHop({ from, to, by: `${waist}/provider.ts` })).toBe(false);
});
