import { getOrInsert, isCount, LeaseholdError } from "leasehold/common";
import { attributeBytes } from "./attributes.js";
import type { LogPart, NameEvent, NameEventKind } from "./change-log.js";
import type { NodeList } from "./nodes.js";
import type { Attributes, Content, Entry, Fact, FileEntry, FolderEntry, Part, Placement } from "./types.js";

/** One block of the journal of names: a batch of changes or a part of a snapshot. Both consist of facts. */
export interface NamesRecord {
  readonly nextId: number;
  readonly facts: readonly Fact[];
  /** The placements of the contents in the facts, and placements that have changed. */
  readonly placements?: readonly Placement[];
  /** The list of nodes, if it has changed. */
  readonly list?: NodeList | undefined;
  /** The events of the changes. Absent in records from a former version. */
  readonly log?: LogPart | undefined;
}

type FolderFields = [
  id: number,
  parent: number,
  name: string,
  modifiedMs: number,
  attributes?: Attributes | null,
  quota?: [bytes: number | null, files: number | null],
];

type FileFields = [
  id: number,
  parent: number,
  name: string,
  modifiedMs: number,
  version: string,
  content: string,
  isLive: 0 | 1,
  size: number,
  blockSize: number,
  checksum: number,
  attributes?: Attributes | null,
  parts?: readonly PartFields[],
];

/** Has no birth: written by a former version, which reused the same numbers for several logs. */
type LogFields = [first: number, events: EventFields[], birth?: string];

type EventFields = [
  what: NameEventKind,
  path: string,
  /** 2: the folder is empty. */
  isFolder: 0 | 1 | 2,
  version?: string | null,
  size?: number | null,
  from?: string,
  existed?: 0 | 1,
];

type PartFields = [id: string, size: number, blockSize: number, checksum: number];

type Fields = [id: number] | FolderFields | FileFields;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeNames({ nextId, facts, placements = [], list, log }: NamesRecord): Uint8Array {
  const changes = log && [log.first, log.events.map(eventFields), log.birth];
  const fields = [nextId, facts.map(fieldsOf), grouped(placements), list ?? null, changes ?? null];
  return encoder.encode(JSON.stringify(fields));
}

type RecordFields = [
  nextId: number,
  facts: Fields[],
  placements: Grouped[],
  list: NodeList | null,
  /** Absent in records from a former version. */
  log?: LogFields | null,
];

/**
 * Records carry no format number. Those of a later version of Leasehold don't begin with a number, or have
 * more fields.
 * @throws LeaseholdError `VERSION_MISMATCH`, `FILE_DAMAGED`
 */
export function decodeNames(bytes: Uint8Array): NamesRecord {
  try {
    const record = JSON.parse(decoder.decode(bytes)) as RecordFields;
    if (!Array.isArray(record)) throw ofLaterVersion();
    const [nextId, facts, placements, list, log] = record;
    if (record.length > recordLength || !isCount(nextId) || !isLog(log)) throw ofLaterVersion();
    return {
      nextId,
      facts: facts.map(factOf),
      placements: placements.flatMap(ungrouped),
      list: list ?? undefined,
      ...(typeof log?.[2] === "string" && {
        log: { first: log[0], events: log[1].map(eventOf), birth: log[2] },
      }),
    };
  } catch (cause) {
    if (cause instanceof LeaseholdError) throw cause;
    throw new LeaseholdError("FILE_DAMAGED", "a record of names cannot be read", { cause });
  }
}

const recordLength = 5;
const isLog = (log: unknown): boolean => (log ?? null) === null || (Array.isArray(log) && isCount(log[0]));
/** The number of fields in a fact: of a removed name, a folder, a file. */
const factLengths = new Set([1, 4, 5, 6, 10, 11, 12]);

function ofLaterVersion(): LeaseholdError {
  return new LeaseholdError("VERSION_MISMATCH", "the names have a record of a later version of Leasehold");
}

/** Contents on the same nodes. */
type Grouped = readonly [nodes: readonly string[], contents: readonly string[]];

function grouped(placements: readonly Placement[]): Grouped[] {
  const groups = new Map<string, { readonly nodes: readonly string[]; readonly contents: string[] }>();
  for (const [content, nodes] of placements)
    getOrInsert(groups, nodes.join(), () => ({ nodes, contents: [] })).contents.push(content);
  return [...groups.values()].map(({ nodes, contents }) => [nodes, contents]);
}

const ungrouped = ([nodes, contents]: Grouped): Placement[] => contents.map((content) => [content, nodes]);

/** The upper bound of the length of a content's id and a set of nodes in the placements of a record. */
export const placedBytesMax = 72;
export const nodesBytes = (nodes: readonly string[]): number =>
  nodes.reduce((sum, node) => sum + node.length + 3, 8);

function fieldsOf([id, name]: Fact): Fields {
  if (name === null) return [id];
  const { parent, entry } = name;
  const { attributes } = entry;
  const last = attributes === undefined ? ([] as const) : ([attributes] as const);
  if (entry.kind === "folder") {
    const { quota, modifiedMs } = entry;
    if (quota === undefined) return [id, parent, name.name, modifiedMs, ...last];
    return [id, parent, name.name, modifiedMs, attributes ?? null, [quota.bytes, quota.files]];
  }
  const { id: content, isLive, size, blockSize, checksum } = entry.content;
  const live = isLive ? 1 : 0;
  const { modifiedMs, version } = entry;
  const { parts } = entry.content;
  const end = parts === undefined ? last : ([attributes ?? null, parts.map(partFields)] as const);
  return [id, parent, name.name, modifiedMs, version, content, live, size, blockSize, checksum, ...end];
}

/** A start calls it for each name, so it neither spreads nor destructures objects. */
function factOf(fields: Fields): Fact {
  if (!factLengths.has(fields.length)) throw ofLaterVersion();
  const id = fields[0];
  if (fields.length === 1) return [id, null];
  const entry = fields.length <= 6 ? folderOf(fields as FolderFields) : fileOf(fields as FileFields);
  return [id, { id, parent: fields[1], name: fields[2], entry }];
}

function folderOf([, , , modifiedMs, attributes, quota]: FolderFields): FolderEntry {
  const limits = quota && { quota: { bytes: quota[0], files: quota[1] } };
  return { kind: "folder", modifiedMs, ...limits, ...some(attributes) };
}

function fileOf(fields: FileFields): FileEntry {
  const whole = {
    id: fields[5],
    isLive: fields[6] === 1,
    size: fields[7],
    blockSize: fields[8],
    checksum: fields[9],
  };
  const parts = fields.length > 11 ? fields[11] : undefined;
  const content: Content = parts === undefined ? whole : { ...whole, parts: parts.map(partOf) };
  const attributes = fields.length > 10 ? fields[10] : undefined;
  const entry = { kind: "file", content, version: fields[4], modifiedMs: fields[3] } as const;
  return attributes === undefined || attributes === null ? entry : { ...entry, attributes };
}

function eventFields({
  what,
  path,
  isFolder,
  isEmpty,
  version,
  size,
  from,
  existed,
}: NameEvent): EventFields {
  const folder = !isFolder ? 0 : isEmpty === true ? 2 : 1;
  if (from !== undefined)
    return [what, path, folder, version ?? null, size ?? null, from, existed === true ? 1 : 0];
  return version === undefined ? [what, path, folder] : [what, path, folder, version, size ?? null];
}

function eventOf([what, path, folder, version, size, from, existed]: EventFields): NameEvent {
  return {
    what,
    path,
    isFolder: folder > 0,
    ...(folder === 2 && { isEmpty: true }),
    ...(typeof version === "string" && { version }),
    ...(typeof size === "number" && { size }),
    ...(from !== undefined && { from, existed: existed === 1 }),
  };
}

function partFields({ id, size, blockSize, checksum }: Part): PartFields {
  return [id, size, blockSize, checksum];
}

function partOf([id, size, blockSize, checksum]: PartFields): Part {
  return { id, size, blockSize, checksum };
}

function some(attributes: Attributes | null | undefined): { readonly attributes?: Attributes } {
  return attributes === undefined || attributes === null ? {} : { attributes };
}

/** The upper bound of a part's length in a record. */
const partBytes = 96;

/** The upper bound of the length in a record of the fields that most entries lack. */
export function extraBytes(entry: Entry): number {
  const parts = entry.kind === "file" ? (entry.content.parts?.length ?? 0) : 0;
  return parts * partBytes + attributeBytes(entry.attributes);
}
