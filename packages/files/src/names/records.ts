import { LeaseholdError } from "leasehold/common";
import type { Content, Fact, Name } from "./types.js";

/** One block of the journal of names: a batch of changes, or a part of a snapshot. Both are facts. */
export interface NamesRecord {
  readonly nextId: number;
  readonly facts: readonly Fact[];
}

type Fields =
  | [id: number]
  | [id: number, parent: number, name: string, modifiedMs: number]
  | [
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
    ];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeNames({ nextId, facts }: NamesRecord): Uint8Array {
  return encoder.encode(JSON.stringify([nextId, ...facts.map(fieldsOf)]));
}

/** @throws LeaseholdError `FILE_DAMAGED` */
export function decodeNames(bytes: Uint8Array): NamesRecord {
  try {
    const [nextId, ...facts] = JSON.parse(decoder.decode(bytes)) as [number, ...Fields[]];
    return { nextId, facts: facts.map(factOf) };
  } catch (cause) {
    throw new LeaseholdError("FILE_DAMAGED", "a record of names cannot be read", { cause });
  }
}

function fieldsOf([id, name]: Fact): Fields {
  if (name === null) return [id];
  const { parent, entry } = name;
  if (entry.kind === "folder") return [id, parent, name.name, entry.modifiedMs];
  const { id: content, isLive, size, blockSize, checksum } = entry.content;
  const live = isLive ? 1 : 0;
  return [id, parent, name.name, entry.modifiedMs, entry.version, content, live, size, blockSize, checksum];
}

function factOf(fields: Fields): Fact {
  if (fields.length === 1) return [fields[0], null];
  const [id, parent, name, modifiedMs] = fields;
  if (fields.length === 4) return [id, { id, parent, name, entry: { kind: "folder", modifiedMs } }];
  const [, , , , version, contentId, isLive, size, blockSize, checksum] = fields;
  const content: Content = { id: contentId, isLive: isLive === 1, size, blockSize, checksum };
  const whole: Name = { id, parent, name, entry: { kind: "file", content, version, modifiedMs } };
  return [id, whole];
}
