import type { Copies } from "./copies.js";
import { forEachOf } from "./each.js";
import { copiesPerSync, type PromiseAnswer } from "./messages.js";
import { compareVersions, type Header, headerOf, headerText, stampOf } from "./records.js";
import type { NodeParts } from "./settings.js";

/** Blocks that are fetched concurrently. */
const blocksAtOnce = 4;

/** The state of a file, as a majority has it. */
interface Found {
  readonly header: Header | undefined;
  /** The newest version of each block, and the nodes that have it. */
  readonly blocks: ReadonlyMap<number, { readonly tag: string; readonly nodes: readonly string[] }>;
}

/**
 * The replica reset, which a new primary does before it serves.
 *
 * A majority promises to refuse all earlier epochs. Of these copies, those with the newest mark count. An
 * earlier reset that has served left its mark at a majority, so one of them is here, and a change that it
 * discarded cannot come back from copies without the mark. Each acknowledged change is at one of the copies
 * that count, as it was acknowledged by a majority of copies with a mark that was not newer, or was found by
 * the reset that made the newer one. An unacknowledged change is found or not; it is settled by being at a
 * majority, with a new mark, before the primary serves.
 *
 * The duration grows with the file: `time` begins anew for each part. If a reset fails, the next one finds
 * the blocks that were copied.
 */
export async function reset(parts: NodeParts, copies: Copies, time: () => () => number): Promise<void> {
  const promises = await copies.promises(time());
  const newestBase = promises
    .map(({ base }) => BigInt(base!))
    .reduce((one, other) => (one > other ? one : other));
  const counting = promises.filter(({ base }) => BigInt(base!) === newestBase);
  const found = await findNewest(copies, counting);
  await takeOver(parts, copies, found);
  try {
    await copies.completeMajority(time());
  } catch (error) {
    // The other copies have gone on without the version that is damaged here, and cannot be completed from
    // this one. It counts as lost from now on, so the next reset finds what they have.
    if (copies.hasLost) await parts.replica.forget(copies.path, copies.epoch);
    throw error;
  }
}

async function findNewest(copies: Copies, counting: readonly PromiseAnswer[]): Promise<Found> {
  let header: Header | undefined;
  for (const { header: text } of counting) {
    const other = text === null ? undefined : headerOf(text);
    if (header === undefined || (other !== undefined && compareVersions(other, header) > 0)) header = other;
  }
  const blocks = new Map<number, { tag: string; nodes: string[] }>();
  for (const { node, incarnation } of counting) {
    for (const [index, tag] of await copies.tagsAt(node, incarnation)) {
      // A copy with an unreadable tag does not count: its base says so.
      if (tag === null || header === undefined || compareVersions(stampOf(tag), header.floor) < 0) continue;
      const newest = blocks.get(index);
      if (newest === undefined || compareVersions(stampOf(tag), stampOf(newest.tag)) > 0)
        blocks.set(index, { tag, nodes: [node] });
      else if (newest.tag === tag) newest.nodes.push(node);
    }
  }
  return { header, blocks };
}

/** Writes the state that was found to this node's copy, in the order of `#copyTo`. */
async function takeOver(parts: NodeParts, copies: Copies, { header, blocks }: Found): Promise<void> {
  const { nodes, replica } = parts;
  const { path } = copies;
  const epoch = String(copies.epoch);
  const here = new Map(await replica.tags(path));
  const lacking = [...blocks].filter(([index, { tag }]) => here.get(index) !== tag);
  let copied = 0;
  await forEachOf(lacking, blocksAtOnce, async ([index, { tag, nodes: having }]) => {
    const bytes = await copies.fetch(index, tag, new Set([...having, ...nodes]));
    const later = (copied += 1) % copiesPerSync !== 0;
    await replica.put({ path, epoch, index, tag, spare: false, later }, bytes);
  });
  await replica.header({ path, epoch, header: header === undefined ? null : headerText(header) });
  for (const index of here.keys()) if (!blocks.has(index)) await replica.drop({ path, epoch, index });
  const { incarnation } = await replica.promise({ path, epoch });
  await replica.mark({ path, epoch, incarnation });
}
