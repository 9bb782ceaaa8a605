import { openBlockDirectory } from "../../../packages/files/src/disk/directory-store.js";
import { decodeNames } from "../../../packages/files/src/names/records.js";
import { NamesState } from "../../../packages/files/src/names/state.js";
import type { BlockStore } from "../../../packages/files/src/ports.js";
import { livePrefix, namesKey } from "../../../packages/files/src/protocol/keys.js";
import {
  compareVersions,
  type FileMeta,
  metaOf,
  stampOf,
} from "../../../packages/files/src/protocol/records.js";

/** The result of comparing the disks of all nodes after the nodes have ended. */
export interface DisksJudgement {
  readonly files: number;
  readonly blocks: number;
  readonly differences: readonly string[];
}

const pathsPerPage = 1_000;

/**
 * Compares the disks after a calm period and a sync: each file that exists must be the same on every disk,
 * byte for byte. Contents without a name are not compared, since each node collects them at a time of its
 * own.
 */
export async function compareDisks(folders: Readonly<Record<string, string>>): Promise<DisksJudgement> {
  const disks = new Map<string, BlockStore>();
  for (const [node, folder] of Object.entries(folders)) disks.set(node, await openBlockDirectory(folder));
  const names = await namesOn([...disks.values()]);
  const differences: string[] = [];
  let [files, blocks] = [0, 0];
  for (const path of await pathsOn([...disks.values()])) {
    const copies = new Map<string, FileMeta>();
    for (const [node, disk] of disks) {
      const text = await disk.readMeta(path);
      if (text !== undefined) copies.set(node, metaOf(text));
    }
    // A node that was down when a file was removed may still have an older copy.
    const newest = [...copies.values()]
      .map(({ header }) => header)
      .sort(byVersion)
      .at(-1);
    if (newest?.exists !== true) continue;
    if (path.startsWith(livePrefix) && !names.isNamed(path.slice(livePrefix.length))) continue;
    files += 1;
    const contents = new Map<string, string>();
    for (const [node, disk] of disks) {
      const { text, count } = await contentOf(disk, path, copies.get(node));
      contents.set(node, text);
      blocks += count;
    }
    if (new Set(contents.values()).size > 1)
      differences.push(
        `${path} differs: ${[...contents].map(([node, text]) => `${node} has ${text}`).join("; ")}`,
      );
  }
  for (const disk of disks.values()) await disk.close();
  return { files, blocks, differences };
}

/** All names, from the disk that has the newest version of them. */
async function namesOn(disks: readonly BlockStore[]): Promise<NamesState> {
  const state = new NamesState();
  const copies: { readonly disk: BlockStore; readonly header: NonNullable<FileMeta["header"]> }[] = [];
  for (const disk of disks) {
    const text = await disk.readMeta(namesKey);
    const header = text === undefined ? undefined : metaOf(text).header;
    if (header !== undefined) copies.push({ disk, header });
  }
  const newest = copies.sort((one, other) => byVersion(one.header, other.header)).at(-1);
  if (newest === undefined) throw new Error("no disk has names");
  const { disk, header } = newest;
  const records = await disk.listBlocks(namesKey);
  for (const { index } of records.toSorted((one, other) => one.index - other.index)) {
    const block = await disk.readBlock(namesKey, index);
    if (block === undefined || compareVersions(stampOf(block.tag), header.floor) < 0) continue;
    const { facts, placements, list } = decodeNames(block.bytes);
    state.replay(facts, placements, list);
  }
  state.endReplay();
  return state;
}

function byVersion(one: FileMeta["header"], other: FileMeta["header"]): number {
  if (one === undefined || other === undefined)
    return Number(one !== undefined) - Number(other !== undefined);
  return compareVersions(one, other);
}

async function pathsOn(disks: readonly BlockStore[]): Promise<string[]> {
  const paths = new Set<string>();
  for (const disk of disks)
    for (let after = ""; ;) {
      const page = await disk.listFiles("", after, pathsPerPage);
      for (const path of page) paths.add(path);
      if (page.length < pathsPerPage) break;
      after = page.at(-1)!;
    }
  return [...paths].sort();
}

/** The file's header and each block with its version, as text. */
async function contentOf(
  disk: BlockStore,
  path: string,
  meta: FileMeta | undefined,
): Promise<{ text: string; count: number }> {
  const blocks: string[] = [];
  for (const { index } of await disk.listBlocks(path)) {
    const block = await disk.readBlock(path, index);
    const bytes = block === undefined ? "nothing" : Buffer.from(block.bytes).toString("latin1");
    blocks.push(`${index}: ${block?.tag} ${JSON.stringify(bytes)}`);
  }
  const header = meta?.header;
  const head = header === undefined ? "no header" : `${header.epoch}.${header.sequence}, base ${meta?.base}`;
  return { text: [head, ...blocks].join(", "), count: blocks.length };
}
