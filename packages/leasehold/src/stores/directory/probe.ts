import { mkdir, open, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import type { ProbeFinding } from "../common/contract.js";
import { errnoOf } from "../common/io-error.js";
import { ungated } from "./files.js";
import { homeName } from "./marker.js";
import { longestNameBytes, makeNamedVersion } from "./names.js";

export interface DirectoryProbe {
  readonly findings: readonly ProbeFinding[];
  /** Whether file names may have the length and characters that versions with content need. */
  readonly namesHoldContent: boolean;
}

/**
 * Verifies on the file system itself the properties that `RegisterDirectory` relies on, in a temporary
 * directory.
 */
export async function probeDirectory(root: string, marker: string): Promise<DirectoryProbe> {
  const place = join(root, homeName, marker);
  const ground = join(place, `new-${globalThis.crypto.randomUUID()}`);
  await mkdir(ground);
  try {
    const findings = await probeIn(ground);
    const whyNot = await whyNotNamed(ground);
    const seen = whyNot === undefined ? "done" : `${whyNot}: records go into files`;
    const tried = "made the longest name, with every character in it";
    return { findings: [...findings, { tried, seen, ok: true }], namesHoldContent: whyNot === undefined };
  } finally {
    await ungated.discard(place, ground);
  }
}

/**
 * Creates a name of maximum length with every printable character, and looks for it. Returns the problem, if
 * any; the file system is still suitable, but contents then go into files.
 */
async function whyNotNamed(ground: string): Promise<string | undefined> {
  // Two of the 95 characters are escaped.
  const bytes = longestNameBytes - "1=%25%2f".length + 2;
  const content = Uint8Array.from({ length: bytes }, (_, index) => (index < 95 ? 0x20 + index : 0x78));
  const { name } = makeNamedVersion(1, content)!;
  const inside = join(ground, "names");
  await mkdir(inside);
  try {
    await mkdir(join(inside, name));
  } catch (error) {
    throwIfRetryable(error);
    return `it was refused (${errnoOf(error)})`;
  }
  const [found] = (await ungated.namesIn(inside)) ?? [];
  return found === name ? undefined : "it has another name";
}

async function probeIn(ground: string): Promise<readonly ProbeFinding[]> {
  const path = (name: string) => join(ground, name);
  const content = new TextEncoder().encode("leasehold probe");
  await mkdir(path("one"));
  await mkdir(path("two"));
  const begunMs = performance.now();
  // Synced in one wait for the disk, like a register's content and name.
  await ungated.writeSynced(join(path("one"), "file"), content, [path("one")]);
  const syncedMs = (performance.now() - begunMs).toFixed(1);
  // This file only keeps its directory from being empty; it is not needed after a crash.
  await writeFile(join(path("two"), "file"), content);
  const before = await stat(path("one"));
  return [
    { tried: "wrote a file and synced it and its name", seen: `done in ${syncedMs} ms`, ok: true },
    await mustFail("created a file that exists", () =>
      ungated.writeSynced(join(path("one"), "file"), content),
    ),
    await mustFail("renamed a directory onto one that is not empty", () => rename(path("two"), path("one"))),
    await renameOpen(path("one"), path("three")),
    await mustFail("renamed a directory whose name is gone", () => rename(path("one"), path("four"))),
    await sameAfterwards(ground, before.ino, content),
  ];
}

/** Errors that indicate a temporary problem rather than a refusal. */
const retryable: ReadonlySet<string> = new Set([
  "EROFS",
  "ENOSPC",
  "EDQUOT",
  "EIO",
  "ESTALE",
  "ENODEV",
  "ENXIO",
]);

function throwIfRetryable(error: unknown): void {
  if (retryable.has(errnoOf(error))) throw error;
}

export async function mustFail(tried: string, run: () => Promise<void>): Promise<ProbeFinding> {
  try {
    await run();
    return { tried, seen: "it was done", ok: false };
  } catch (error) {
    throwIfRetryable(error);
    return { tried, seen: `it was refused (${errnoOf(error)})`, ok: true };
  }
}

/**
 * Readers have the content open while a writer renames its directory, which some network file systems do not
 * support.
 */
async function renameOpen(from: string, to: string): Promise<ProbeFinding> {
  const tried = "renamed a directory while a file in it was open";
  const file = await open(join(from, "file"), "r");
  try {
    await rename(from, to);
    return { tried, seen: "done", ok: true };
  } catch (error) {
    throwIfRetryable(error);
    return { tried, seen: `it was refused (${errnoOf(error)})`, ok: false };
  } finally {
    await file.close();
  }
}

async function sameAfterwards(ground: string, inode: number, content: Uint8Array): Promise<ProbeFinding> {
  const names = [...((await ungated.namesIn(ground)) ?? [])].sort().join(", ");
  const found = await ungated.contentOf(join(ground, "three", "file"), content.length + 1);
  const isSame =
    Buffer.from(found ?? []).equals(content) && (await stat(join(ground, "three"))).ino === inode;
  return {
    tried: "listed the directory and read the file after that",
    seen: `found ${names} and ${isSame ? "what was written" : "something else"}`,
    ok: isSame && names === "three, two",
  };
}
