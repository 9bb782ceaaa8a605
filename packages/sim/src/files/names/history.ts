import {
  checkLinearizable,
  type HistoryOperation,
  type SequentialModel,
} from "leasehold/inner/testing/linearizability.js";
import { blockSize } from "../world.js";

/** A call on files by their paths. Content is text, a character for a byte. */
export type NamesCall =
  | { readonly kind: "put"; readonly path: string; readonly text: string; readonly ifMissing: boolean }
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "append"; readonly path: string; readonly text: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "rename" | "copy"; readonly from: string; readonly to: string }
  /** The most files that a folder may have; null: no limit. */
  | { readonly kind: "quota"; readonly path: string; readonly files: number | null }
  /** A snapshot of a folder is created or removed. There is at most one, with a fixed name. */
  | { readonly kind: "snapshot" | "unsnapshot"; readonly path: string }
  | { readonly kind: "list" };

export type NamesOutput =
  | "done"
  | "missing"
  /** Something else was already there: a file where a folder is needed, or vice versa. */
  | "exists"
  /** A quota would be exceeded. */
  | "full"
  | { readonly text: string }
  | { readonly offset: number }
  | { readonly paths: readonly string[] };

/** Where the snapshot of a folder is. */
export const snapshotIn = "/.snapshots/s";
const isHidden = (path: string): boolean => path.includes("/.snapshots");
const hasSnapshot = (tree: Tree, folder: string): boolean =>
  Object.keys(tree).some((path) => path.startsWith(`${folder}/`) && path.endsWith(snapshotIn));

/** Contents by path; null for a folder. A folder's quota is stored under its path plus this suffix. */
const quotaIn = "/?";
type Tree = Readonly<Record<string, string | null>>;

/** The limit of steps for the check of one run. */
const stepsMax = 300_000;

/** A file system used by one caller at a time. */
const model: SequentialModel<Tree, NamesCall, NamesOutput> = {
  initial: {},
  step(tree, call, output) {
    if (output === undefined && call.kind === "append") return partsOf(tree, call.path, call.text);
    const [expected, next] = outcomeOf(tree, call);
    if (output === undefined) return [next];
    return JSON.stringify(expected) === JSON.stringify(output) ? [next] : [];
  },
  keyOf: (tree) =>
    Object.keys(tree)
      .sort()
      .map((path) => `${path}=${tree[path] ?? "/"}`)
      .join(),
};

function outcomeOf(tree: Tree, call: NamesCall): readonly [NamesOutput, Tree] {
  switch (call.kind) {
    case "list": {
      const paths = Object.keys(tree).filter(
        (path) => tree[path] !== null && !path.endsWith(quotaIn) && !isHidden(path),
      );
      return [{ paths: paths.sort() }, tree];
    }
    case "read": {
      const text = tree[call.path];
      if (text === null) return ["exists", tree];
      return [text === undefined ? "missing" : { text }, tree];
    }
    case "append": {
      const text = tree[call.path];
      if (text === null) return ["exists", tree];
      if (text === undefined) return ["missing", tree];
      return [{ offset: text.length }, { ...tree, [call.path]: text + call.text }];
    }
    case "remove":
      if (tree[call.path] === undefined) return ["missing", tree];
      if (hasSnapshot(tree, call.path)) return ["exists", tree];
      return ["done", without(tree, call.path)];
    case "unsnapshot":
      if (tree[call.path + snapshotIn] === undefined) return ["missing", tree];
      return ["done", without(tree, `${call.path}/.snapshots`)];
    case "snapshot": {
      const there = tree[call.path];
      if (there === undefined) return ["missing", tree];
      if (there !== null || hasSnapshot(tree, call.path)) return ["exists", tree];
      const snapshot = call.path + snapshotIn;
      const kept = Object.keys(tree)
        .filter((path) => path.startsWith(`${call.path}/`) && !path.endsWith(quotaIn))
        .map((path) => [snapshot + path.slice(call.path.length), tree[path]!] as const);
      const folders = { [`${call.path}/.snapshots`]: null, [snapshot]: null };
      return ["done", { ...tree, ...folders, ...Object.fromEntries(kept) }];
    }
    case "put": {
      const there = tree[call.path];
      if (there === null || (call.ifMissing && there !== undefined)) return ["exists", tree];
      const made = withFolders(tree, call.path);
      return made === undefined ? ["exists", tree] : fitted(tree, { ...made, [call.path]: call.text });
    }
    case "quota": {
      const there = tree[call.path];
      if (there !== null) return [there === undefined ? "missing" : "exists", tree];
      const { [call.path + quotaIn]: _before, ...others } = tree;
      if (call.files === null) return ["done", others];
      return ["done", { ...others, [call.path + quotaIn]: String(call.files) }];
    }
    default:
      return moved(tree, call);
  }
}

/** A failed write in place may have written some of its blocks, each whole: docs/files.md. */
function partsOf(tree: Tree, path: string, text: string): Tree[] {
  const before = tree[path];
  if (typeof before !== "string") return [tree];
  const end = before.length + text.length;
  let outcomes = [before];
  for (let at = before.length; at < end;) {
    const from = at;
    at = Math.min(end, (Math.floor(at / blockSize) + 1) * blockSize);
    const piece = text.slice(from - before.length, at - before.length);
    outcomes = outcomes.flatMap((outcome) => [outcome, outcome.padEnd(from, "\0") + piece]);
  }
  return outcomes.map((outcome) => ({ ...tree, [path]: outcome }));
}

function moved(
  tree: Tree,
  { kind, from, to }: NamesCall & { from: string; to: string },
): readonly [NamesOutput, Tree] {
  if (tree[from] === undefined) return ["missing", tree];
  if (hasSnapshot(tree, to)) return ["exists", tree];
  const made = withFolders(tree, to);
  if (made === undefined) return ["exists", tree];
  const names = Object.keys(tree).filter((path) => path === from || path.startsWith(`${from}/`));
  const base = without(kind === "rename" ? without(made, from) : made, to);
  const added = names
    .filter((path) => kind === "rename" || !(path.endsWith(quotaIn) || isHidden(path)))
    .map((path) => [to + path.slice(from.length), tree[path]!] as const);
  return fitted(
    tree,
    { ...base, ...Object.fromEntries(added) },
    kind === "rename" ? { from, to } : undefined,
  );
}

/** The next tree, unless a folder has more than its quota in it and more than before. */
function fitted(
  tree: Tree,
  next: Tree,
  moved?: { readonly from: string; readonly to: string },
): readonly [NamesOutput, Tree] {
  const isFull = Object.keys(next).some((key) => {
    if (!key.endsWith(quotaIn)) return false;
    const folder = key.slice(0, -quotaIn.length);
    const before = moved?.to === folder ? moved.from : folder;
    const has = filesIn(next, folder);
    return has > Number(next[key]) && has > filesIn(tree, before);
  });
  return isFull ? ["full", tree] : ["done", next];
}

function filesIn(tree: Tree, folder: string): number {
  return Object.keys(tree).filter(
    (path) => path.startsWith(`${folder}/`) && !path.endsWith(quotaIn) && !isHidden(path),
  ).length;
}

function without(tree: Tree, path: string): Tree {
  const kept = Object.entries(tree).filter(([each]) => each !== path && !each.startsWith(`${path}/`));
  return Object.fromEntries(kept);
}

/** Undefined if one of the folders above the path is a file. */
function withFolders(tree: Tree, path: string): Tree | undefined {
  const parts = path.split("/").slice(0, -1);
  const above = parts.map((_, index) => parts.slice(0, index + 1).join("/"));
  if (above.some((each) => typeof tree[each] === "string")) return undefined;
  return { ...tree, ...Object.fromEntries(above.map((each) => [each, null])) };
}

export type NamesOperations = HistoryOperation<NamesCall, NamesOutput>[];

export const judgeNames = (operations: NamesOperations) => checkLinearizable(model, operations, { stepsMax });
