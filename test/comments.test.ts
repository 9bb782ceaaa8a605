import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { packageNames } from "./support/reachable.js";

/** Names in backticks in comments exist: this finds a name that was changed only in the code. */

const root = fileURLToPath(new URL("..", import.meta.url));

/** Names in other people's code, which ours doesn't have. */
const foreign = new Set([
  "String.hashCode",
  "console.log",
  "getPeerX509Certificate",
  "ListObjectsV2",
  "leasehold/cli",
  "leasehold/common",
  "leasehold/delta",
  "leasehold/etcd",
  "leasehold/flease",
  "leasehold/membership",
  "leasehold/members/web/a",
  "leasehold/logs",
  "leasehold/metrics",
  "leasehold/provider",
  "leasehold/testing",
  "leasehold/traces",
  "owner/token",
]);

const commentPattern = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ [^\n]*/g;

interface Source {
  /** The path below the root. */
  readonly path: string;
  readonly comments: readonly string[];
  readonly code: string;
}

const folders = packageNames.map((name) => `packages/${name}/src`);
const sources: Source[] = folders
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.name.endsWith(".ts") && !entry.parentPath.includes("/etcd/gen"))
  .map((entry) => {
    const text = readFileSync(join(entry.parentPath, entry.name), "utf8");
    return {
      path: relative(root, join(entry.parentPath, entry.name)),
      comments: text.match(commentPattern) ?? [],
      code: text.replaceAll(commentPattern, ""),
    };
  });
const words = new Set(sources.flatMap(({ code }) => code.match(/[A-Za-z_$][\w$]*/g) ?? []));
const fileNames = new Set(sources.map(({ path }) => path.slice(path.lastIndexOf("/") + 1)));

/**
 * True if this file or folder exists below the root, `docs`, the sources of a package, or any folder around
 * the file `from`.
 */
function pathExists(named: string, from: string): boolean {
  if (fileNames.has(named)) return true;
  const places = ["", "docs", ...folders];
  for (let folder = dirname(from); folder !== "."; folder = dirname(folder)) places.push(folder);
  // `core/raft` is a room of another package.
  const [, name, rest = ""] = /^(core|files|sim)(?:\/(.*))?$/.exec(named) ?? [];
  if (name !== undefined && existsSync(join(root, "packages", name, "src", rest))) return true;
  return places.some((place) => existsSync(join(root, place, named)));
}

/** The names in a comment of this file that refer to nothing. */
function unknownNames(comment: string, from: string): string[] {
  const named = [...comment.matchAll(/`#?([A-Za-z_$][\w$./-]*)(?:\(\))?`/g)].map(([, name = ""]) => name);
  return named.filter((name) => {
    if (foreign.has(name)) return false;
    if (name.includes("/") || /\.(?:ts|mjs|md)$/.test(name)) return !pathExists(name, from);
    const isCode = /[a-z][A-Z]|^\w+\.#?\w+$/.test(name);
    return isCode && name.split(".").some((part) => !words.has(part));
  });
}

test("names in backticks in comments exist: files, folders and names declared in the code", () => {
  const found = sources.flatMap(({ path, comments }) =>
    comments.flatMap((comment) => unknownNames(comment, path).map((name) => `${path}: ${name}`)),
  );
  expect(found).toEqual([]);
  expect(sources.flatMap(({ comments }) => comments).length).toBeGreaterThan(3_000);
});

describe("a comment with", () => {
  const from = "packages/leasehold/src/flease/protocol/acceptor.ts";
  test.each(["`core/client`", "`slot.ts`", "see `Proposer.slotOf`", "`holdUntilMs`", "`forgetBallots()`"])(
    "%s names nothing that exists",
    (comment) => expect(unknownNames(comment, from)).toHaveLength(1),
  );
  test.each([
    "`packages/leasehold/src/etcd`",
    "`instance.ts`",
    "see `Proposer.instanceOf`",
    "`holdExpiresMonoMs`",
    "`held`",
  ])("%s passes", (comment) => expect(unknownNames(comment, from)).toEqual([]));
});

/** The text of a comment without its marks, on one line. */
function textOf(comment: string): string {
  return comment
    .replace(/^\/(?:\*+|\/)\s*/, "")
    .replaceAll(/\n\s*\*\s?/g, " ")
    .trim();
}

/** Beginnings without a subject: readers have to read such a sentence twice. */
const headless = new RegExp(
  `^(?:${[
    "As (?:long|many|much|often|soon) as",
    "By (?:which|whom)",
    "Each time (?:another|others|somebody)",
    "In (?:place of|which)",
    "It (?:has|is|was)",
    "Of (?:all|each|the|those|which|whom)",
    "So (?:long|many|much|often)",
    "Tells?",
    "That which",
    "Those (?:of|that|who)",
    "Told",
    "What",
    "Which",
    "Whether or not",
    "Who(?:ever|m|se)?",
  ].join("|")})\\b`,
);

/** The rooms in which all comments begin with a subject; the others are to follow. */
const rooms = [
  ...["copies", "host", "http2", "journal", "raft", "replica", "server", "state"].map(
    (room) => `core/src/${room}`,
  ),
  ...["node", "protocol", "users", "webdav"].map((room) => `files/src/${room}`),
  "docs/src",
  "fence/src",
  "gateway/src",
  "redlock/src",
  ...[
    "common",
    "delta",
    "entry",
    "etcd",
    "flease",
    "lease",
    "membership",
    "runtime",
    "stores",
    "testing",
  ].map((room) => `leasehold/src/${room}`),
];

/** Rooms of commands. */
const roomsOfCommands = ["files/src/command", "leasehold/src/cli"];

test.each([...rooms, ...roomsOfCommands, "sim/src"])(
  "every comment in %s begins with its subject",
  (room) => {
    const below = sources.filter(({ path }) => path.startsWith(`packages/${room}/`));
    const found = below.flatMap(({ path, comments }) =>
      comments.map(textOf).flatMap((text) => {
        const [beginning] = headless.exec(text) ?? [];
        return beginning === undefined
          ? []
          : [`${path}: say first what it is about, not "${beginning}": ${text.slice(0, 80)}`];
      }),
    );
    expect(found).toEqual([]);
    expect(below.length).toBeGreaterThan(0);
  },
);

test.each([...rooms, ...roomsOfCommands])("nothing in %s is declared as tell, told or say", (room) => {
  const declared = /(?:function\*? |^ +(?:readonly |async )*#?)(?:say|tell|told)(?:[A-Z]\w*)?(?=[(:?]| =)/m;
  const below = sources.filter(({ path }) => path.startsWith(`packages/${room}/`));
  expect(below.flatMap(({ path, code }) => (declared.test(code) ? [path] : []))).toEqual([]);
});

describe("a comment that begins with", () => {
  test.each(["Who waits", "What a store said", "So many ticks", "Of the two", "Told of each answer"])(
    "%s has no subject",
    (beginning) => expect(textOf(`/** ${beginning}, and more. */`)).toMatch(headless),
  );
  test.each(["The caller", "A waiter", "Whether it is held", "How long a lease lasts", "Where it is strict"])(
    "%s has one, or is a clause that stands for one",
    (beginning) => expect(textOf(`/** ${beginning}. */`)).not.toMatch(headless),
  );
});
