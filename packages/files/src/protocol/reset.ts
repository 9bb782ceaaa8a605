import type { Copies } from "./copies.js";
import { forEachOf } from "./each.js";
import { copiesPerSync, type PromiseAnswer } from "./messages.js";
import { compareVersions, type Header, headerOf, headerText, stampOf } from "./records.js";
import type { NodeParts } from "./settings.js";

/** Blocks that are fetched concurrently. */
const blocksAtOnce = 4;

/** The state of a file, as known to a majority. */
interface Found {
  readonly header: Header | undefined;
  /** The newest version of each block, and the nodes that have it. */
  readonly blocks: ReadonlyMap<number, { readonly tag: string; readonly nodes: readonly string[] }>;
}

/**
 * The replica reset, which a new primary performs before it serves.
 *
 * A majority promises to refuse all earlier epochs. Of these copies, those with the newest mark count. An
 * earlier reset that went on to serve left its mark at a majority, so at least one of these copies has it,
 * and a change that the earlier reset discarded cannot come back from copies without the mark.
 *
 * Each acknowledged change is at one of the copies that count: it was either acknowledged by a majority of
 * copies whose mark was not newer, or found by the reset that made the newer mark. An unacknowledged change
 * may or may not be found; if it is, the reset settles it by writing it to a majority, with a new mark,
 * before the primary serves.
 *
 * The duration grows with the file, so `time` starts again for each part. If a reset fails, the next one
 * finds the blocks that were already copied.
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
    // The version that is damaged here is at no other copy: the others have gone on without it and can't be
    // completed from this copy. From now on this copy counts as lost, so the next reset finds what the others
    // have.
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
      // A copy with an unreadable tag has a null base, so it does not count.
      if (tag === null || header === undefined || compareVersions(stampOf(tag), header.floor) < 0) continue;
      const newest = blocks.get(index);
      if (newest === undefined || compareVersions(stampOf(tag), stampOf(newest.tag)) > 0)
        blocks.set(index, { tag, nodes: [node] });
      else if (newest.tag === tag) newest.nodes.push(node);
    }
  }
  return { header, blocks };
}

/** Writes the state found to this node's copy, in the same order as `#copyTo`. */
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
