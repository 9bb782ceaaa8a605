import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** The table in ARCHITECTURE.md of the files that an acquisition goes through. */

const root = fileURLToPath(new URL("..", import.meta.url));
const filesMax = 14;

interface Hop {
  readonly from: string;
  readonly to: string;
  /** The file by which `from` knows `to`; `to` itself where there is no port between. */
  readonly by: string;
}

/** Of each row the file, and whom it hands the call to: `file`, or `file`, by the port `other` (or by its own). */
function rowsOf(document: string): { readonly file: string; readonly hops: readonly Hop[] }[] {
  const rows = [...document.matchAll(/^\| (\d+) \| `([^`]+)` \|[^|]*\|([^|]*)\|$/gm)];
  return rows.map(([, , file = "", next = ""]) => ({
    file,
    hops: [...next.matchAll(/`([^`]+)`(?:, by (?:(its own port)|(?:the port )?`([^`]+)`))?/g)].map(
      ([, to = "", own, by = to]) => ({ from: file, to, by: own === undefined ? by : file }),
    ),
  }));
}

const rows = rowsOf(readFileSync(join(root, "ARCHITECTURE.md"), "utf8"));

function imports(from: string, to: string): boolean {
  const path = join(root, "src", from);
  const specifier = relative(dirname(path), join(root, "src", to)).replace(/\.ts$/, ".js");
  const text = readFileSync(path, "utf8");
  return text.includes(` from "${specifier.startsWith(".") ? specifier : `./${specifier}`}";`);
}

function isHop({ from, to, by }: Hop): boolean {
  const knows = by === from || imports(from, by);
  return knows && (by === to || imports(to, by) || imports(by, to));
}

test("the way of an acquisition begins at the waist, ends at the acceptor and has fewer than fifteen files", () => {
  expect(rows.map(({ file }) => existsSync(join(root, "src", file)))).toEqual(rows.map(() => true));
  expect(rows[0]?.file).toBe("lease/lease-manager.ts");
  expect(rows.at(-1)?.file).toBe("flease/protocol/acceptor.ts");
  expect(new Set(rows.map(({ file }) => file)).size).toBe(rows.length);
  expect(rows.length).toBeLessThanOrEqual(filesMax);
});

test("each file on the way imports the one it hands the call to, or both know the port between them", () => {
  const hops = rows.flatMap((row) => row.hops);
  expect(hops.length).toBeGreaterThanOrEqual(rows.length - 1);
  expect(hops.filter((hop) => !isHop(hop))).toEqual([]);
});

test("each file on the way is in its place: one before it hands the call to it", () => {
  const early = rows.slice(1).filter(({ file }, index) => {
    const before = rows.slice(0, index + 1).flatMap(({ hops }) => hops.map(({ to }) => to));
    return !before.includes(file);
  });
  expect(early.map(({ file }) => file)).toEqual([]);
});

test("a hop between two files that do not know each other is none", () => {
  const acceptor = "flease/protocol/acceptor.ts";
  expect(isHop({ from: "lease/lease-manager.ts", to: acceptor, by: acceptor })).toBe(false);
  expect(isHop({ from: "lease/lease-manager.ts", to: acceptor, by: "lease/provider.ts" })).toBe(false);
});
