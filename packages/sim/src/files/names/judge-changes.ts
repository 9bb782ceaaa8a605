import type { FileChange, FileStat } from "@leasehold/files/inner/types.js";
import { type Followed, numberOf } from "./follower.js";
import type { NamesCall } from "./history.js";

/** A change that was acknowledged. */
export interface Acknowledged {
  readonly call: NamesCall;
  /** The version of the file that was put. */
  readonly version: string | undefined;
  readonly calledAt: number;
  readonly returnedAt: number;
}

/**
 * Returns what is wrong with the changes that followers have seen; undefined if nothing is.
 * @param followed the parts of each follower
 * @param uncertain calls that may have been done
 * @param files those that exist at the end
 */
export function judgeChanges(
  followed: readonly (readonly Followed[])[],
  acknowledged: readonly Acknowledged[],
  uncertain: readonly NamesCall[],
  files: readonly FileStat[],
): string | undefined {
  const known = new Map<number, string>();
  for (const changes of followed.flat()) {
    let last: number | undefined;
    for (const change of changes) {
      const number = numberOf(change.cursor);
      if (last !== undefined && number !== last + 1) return `change ${number} comes after ${last}`;
      last = number;
      const text = JSON.stringify(change);
      if ((known.get(number) ?? text) !== text) return `change ${number} is ${known.get(number)} and ${text}`;
      known.set(number, text);
    }
  }
  for (const parts of followed) {
    // A follower that has lost its place has not seen everything.
    if (parts.length > 1) continue;
    const wrong =
      countsOf(parts[0]!, acknowledged, uncertain) ??
      orderOf(parts[0]!, acknowledged) ??
      mirrorOf(parts[0]!, files);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Each acknowledged change appears once. Others appear only if they may have been done. */
function countsOf(
  changes: Followed,
  acknowledged: readonly Acknowledged[],
  uncertain: readonly NamesCall[],
): string | undefined {
  const versions = new Set<string>();
  const counts = new Map<string, number>();
  const count = (key: string, by: number): void => void counts.set(key, (counts.get(key) ?? 0) + by);
  for (const { what, path, from, version } of changes) {
    if (what === "removed" || what === "renamed") count(keyOf(what, path, from), 1);
    if (version === undefined || what === "renamed" || what === "touched") continue;
    if (versions.has(version)) return `version ${version} of ${path} is told twice`;
    versions.add(version);
  }
  for (const { call, version } of acknowledged) {
    if (version !== undefined && !versions.has(version)) return `${JSON.stringify(call)} is not told`;
    if (call.kind === "remove") count(keyOf("removed", call.path), -1);
    if (call.kind === "rename") count(keyOf("renamed", call.to, call.from), -1);
  }
  for (const [key, left] of counts) {
    const most = uncertain.filter(
      (call) =>
        (call.kind === "remove" && keyOf("removed", call.path) === key) ||
        (call.kind === "rename" && keyOf("renamed", call.to, call.from) === key),
    ).length;
    if (left < 0 || left > most) return `${key}: ${left} more are told than were made, of ${most} uncertain`;
  }
  return undefined;
}

const keyOf = (what: string, path: string, from = ""): string => `${what} ${from} ${path}`;

/** A put that returned before another one was called comes before it. */
function orderOf(changes: Followed, acknowledged: readonly Acknowledged[]): string | undefined {
  const byVersion = new Map(acknowledged.map((each) => [each.version, each]));
  let latest: Acknowledged | undefined;
  for (const { version, what } of changes) {
    const put = version === undefined || what === "renamed" ? undefined : byVersion.get(version);
    if (put === undefined) continue;
    if (latest !== undefined && put.returnedAt < latest.calledAt)
      return `${JSON.stringify(put.call)} returned before ${JSON.stringify(latest.call)} began, and comes after it`;
    if (latest === undefined || put.calledAt > latest.calledAt) latest = put;
  }
  return undefined;
}

/** Files as seen by a program that applies each change at the change's path. */
function mirrorOf(changes: Followed, files: readonly FileStat[]): string | undefined {
  const mirror = new Map<string, string | undefined>();
  // Folders that appeared together with their contents: the contents are not reported one by one.
  const folders = new Set<string>();
  for (const change of changes) apply(change, mirror, folders);
  const there = new Map(files.map(({ path, version }) => [path, version]));
  for (const [path, version] of mirror) {
    if (!there.has(path)) return `${path} is not there in the end, and its removal was not told`;
    if (version !== undefined && there.get(path) !== version)
      return `${path} has version ${there.get(path)} in the end, and ${version} was told`;
  }
  const isTold = (path: string): boolean =>
    mirror.has(path) || [...folders].some((folder) => path.startsWith(`${folder}/`));
  const missing = files.find(({ path }) => !isTold(path));
  return missing && `${missing.path} is there in the end, and was not told`;
}

function apply(
  { what, kind, path, from, version }: FileChange,
  mirror: Map<string, string | undefined>,
  folders: Set<string>,
): void {
  const below = (each: string, top: string): boolean => each === top || each.startsWith(`${top}/`);
  const moved = [...mirror].filter(([each]) => from !== undefined && below(each, from));
  const movedFolders = [...folders].filter((each) => from !== undefined && below(each, from));
  const isUnreported = from !== undefined && [...folders].some((folder) => from.startsWith(`${folder}/`));
  if (what !== "touched" && what !== "created") {
    for (const top of from === undefined ? [path] : [path, from]) {
      for (const each of mirror.keys()) if (below(each, top)) mirror.delete(each);
      for (const each of folders) if (below(each, top)) folders.delete(each);
    }
  }
  if (from !== undefined) {
    for (const [each, its] of moved) mirror.set(path + each.slice(from.length), its);
    for (const each of movedFolders) folders.add(path + each.slice(from.length));
    if (isUnreported && kind === "folder") folders.add(path);
    else if (isUnreported) mirror.set(path, version);
  } else if (what === "created" || what === "replaced") {
    if (kind === "folder") folders.add(path);
    else mirror.set(path, version);
  }
}
