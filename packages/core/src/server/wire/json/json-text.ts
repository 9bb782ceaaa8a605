import { type DescField, type DescMessage, isFieldSet, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Steps } from "../../../state/steps.js";

/** Escaped as by Go, so that browsers do not take JSON for anything else. */
const escaped: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/** @param value plain JSON, without integers beyond JavaScript's exact range */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (character) => escaped[character]!);
}

type Fields = Readonly<Record<string, unknown>>;

/** Text that is consumed while more is written, so that a long one is never completely in memory. */
export class TextParts {
  #parts: string[] = [];
  #length = 0;

  /** The length of the unconsumed text. */
  get length(): number {
    return this.#length;
  }

  push(part: string): void {
    this.#parts.push(part);
    this.#length += part.length;
  }

  take(): string {
    const text = this.#parts.join("");
    this.#parts = [];
    this.#length = 0;
    return text;
  }
}

/**
 * Returns the items of a list that is not in memory, but made while it is read; undefined for other fields.
 */
export type LazyList = (message: Message, field: DescField) => Iterable<unknown> | undefined;

/**
 * Writes a message as protobuf's JSON, with the names in its .proto file, in steps, as long lists take long.
 * The package's own writer has no steps: it takes half a second for a megabyte of `bytes`.
 */
export function* writeMessage(
  parts: TextParts,
  described: DescMessage,
  message: Message,
  lazyList: LazyList = () => undefined,
): Steps<void> {
  let before = "{";
  for (const field of described.fields) {
    const items = lazyList(message, field);
    if (items === undefined && !isFieldSet(message, field)) continue;
    parts.push(`${before}${jsonText(field.name)}:`);
    before = ",";
    yield* writeField(parts, field, items ?? valueOf(message as unknown as Fields, field), lazyList);
  }
  parts.push(before === "{" ? "{}" : "}");
}

function valueOf(fields: Fields, { localName, oneof }: DescField): unknown {
  return oneof === undefined ? fields[localName] : (fields[oneof.localName] as { value: unknown }).value;
}

function* writeField(parts: TextParts, field: DescField, value: unknown, lazyList: LazyList): Steps<void> {
  if (field.fieldKind !== "list") {
    yield* writeOne(parts, field, value, lazyList);
    return;
  }
  let before = "[";
  for (const each of value as Iterable<unknown>) {
    parts.push(before);
    before = ",";
    yield* writeOne(parts, field, each, lazyList);
    yield;
  }
  parts.push("]");
}

/** Writes one value: a field's, or one in its list. */
function* writeOne(parts: TextParts, field: DescField, value: unknown, lazyList: LazyList): Steps<void> {
  if (field.message !== undefined) yield* writeMessage(parts, field.message, value as Message, lazyList);
  else if (field.enum !== undefined) parts.push(jsonText(field.enum.value[value as number]?.name ?? value));
  else if (field.scalar === ScalarType.BYTES) parts.push(`"${base64(value as Uint8Array)}"`);
  else if (typeof value === "bigint") parts.push(`"${value}"`);
  else parts.push(jsonText(value));
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
