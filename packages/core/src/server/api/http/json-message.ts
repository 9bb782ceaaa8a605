import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { nestingMax } from "../../../state/check.js";
import { CoreError } from "../../../state/errors.js";
import type { Steps } from "../../../state/steps.js";
import { partsMax } from "../calls/txn-size.js";
import { JsonReader, numberLengthMax } from "../../wire/json/json-reader.js";
import { NoJson } from "../../wire/json/json-values.js";

/** An operation of a transaction is two messages, as is each nested transaction. */
const messagesMax = 2 * partsMax + 1;
const messagesDeepMax = 2 * nestingMax + 3;

/**
 * Parses protobuf's JSON, in steps; unknown fields are dropped. The package's own reader has no steps: it
 * takes half a second for a megabyte of `bytes`, and three seconds for a million operations that are then
 * refused.
 *
 * @throws NoJson
 * @throws CoreError `tooManyOperations` as soon as the bound is exceeded
 */
export function* messageFrom<Schema extends DescMessage>(
  described: Schema,
  text: string,
): Steps<MessageShape<Schema>> {
  const reader = new JsonReader(text);
  const message = yield* new MessageReader(reader).message(described);
  reader.end();
  return message;
}

type Fields = ReadonlyMap<string, DescField>;
const known = new WeakMap<DescMessage, Fields>();

/** Indexes fields by both names that protobuf's JSON has for each. */
function fieldsOf(described: DescMessage): Fields {
  let fields = known.get(described);
  if (fields === undefined) {
    const named = (field: DescField) => [field.name, field.jsonName].map((name) => [name, field] as const);
    fields = new Map(described.fields.flatMap(named));
    known.set(described, fields);
  }
  return fields;
}

class MessageReader {
  readonly #reader: JsonReader;
  #messages = 0;
  #depth = 0;

  constructor(reader: JsonReader) {
    this.#reader = reader;
  }

  *message<Schema extends DescMessage>(described: Schema): Steps<MessageShape<Schema>> {
    this.#messages += 1;
    this.#depth += 1;
    if (this.#messages > messagesMax || this.#depth > messagesDeepMax)
      throw new CoreError("tooManyOperations");
    const fields = fieldsOf(described);
    const values: Record<string, unknown> = {};
    yield* this.#reader.members((name) => this.#member(fields.get(name), values));
    this.#depth -= 1;
    return create(described, values as MessageInitShape<Schema>);
  }

  *#member(field: DescField | undefined, values: Record<string, unknown>): Steps<void> {
    if (field === undefined) {
      // A field of a later version: accepted, as with gRPC.
      yield* this.#reader.passOver();
      return;
    }
    // `null` means that the field is absent.
    if (this.#reader.next === "n") {
      this.#reader.literal();
      return;
    }
    const { localName, oneof } = field;
    const place = oneof?.localName ?? localName;
    if (Object.hasOwn(values, place)) throw new NoJson(`${oneof?.name ?? field.name} is set twice`);
    const value = yield* this.#value(field);
    values[place] = oneof === undefined ? value : { case: localName, value };
  }

  *#value(field: DescField): Steps<unknown> {
    if (field.fieldKind !== "list") return yield* this.#one(field);
    const list: unknown[] = [];
    const read = function* (this: MessageReader): Steps<void> {
      list.push(yield* this.#one(field));
    };
    yield* this.#reader.items(() => read.call(this));
    return list;
  }

  /** Reads one value: a field's, or one in its list. */
  *#one(field: DescField): Steps<unknown> {
    if (field.message !== undefined) return yield* this.message(field.message);
    if (field.enum !== undefined) return this.#enumeration(field.enum);
    if (field.scalar === ScalarType.STRING) return this.#reader.string();
    if (field.scalar === ScalarType.BYTES) return bytesOf(this.#reader.string());
    if (field.scalar === ScalarType.BOOL) return this.#boolean(field);
    return this.#number(field);
  }

  #boolean({ name }: DescField): boolean {
    const value = this.#reader.literal();
    if (value === null) throw new NoJson(`${name} is true or false`);
    return value;
  }

  /** A misspelt name must not become the default, which would make it another comparison. */
  #enumeration({ file, typeName, values }: DescEnum): number {
    if (this.#reader.next !== '"') return Number(this.#whole(32, true));
    const name = this.#reader.string();
    const found = values.find((value) => value.name === name);
    if (found !== undefined) return found.number;
    const inPackage = typeName.slice(file.proto.package.length + 1).replaceAll(".", "_");
    throw new NoJson(`unknown value ${JSON.stringify(name)} for enum ${file.proto.package}.${inPackage}`);
  }

  #number({ name, scalar }: DescField): bigint | number {
    const range = wholes.get(scalar);
    if (range === undefined) throw new NoJson(`${name} is of a kind that no request has`);
    const value = this.#whole(range.bits, range.isSigned);
    return range.bits === 32 ? Number(value) : value;
  }

  #whole(bits: number, isSigned: boolean): bigint {
    const isText = this.#reader.next === '"';
    const text = isText ? this.#reader.string() : this.#reader.number();
    const value = wholeOf(text, isText);
    const fits = value !== undefined && (isSigned ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value));
    if (value === undefined || fits !== value)
      throw new NoJson(`${text.slice(0, numberLengthMax)} is no whole number of ${bits} bits`);
    return value;
  }
}

const wholes: ReadonlyMap<ScalarType | undefined, { readonly bits: 32 | 64; readonly isSigned: boolean }> =
  new Map([
    [ScalarType.INT32, { bits: 32, isSigned: true }],
    [ScalarType.UINT32, { bits: 32, isSigned: false }],
    [ScalarType.INT64, { bits: 64, isSigned: true }],
    [ScalarType.UINT64, { bits: 64, isSigned: false }],
  ]);

/** Parses an integer. Outside of strings it may be written as 1.0 or 1e3, as in protobuf's JSON. */
function wholeOf(text: string, isText: boolean): bigint | undefined {
  if (/^-?\d{1,20}$/.test(text)) return BigInt(text);
  const value = isText ? Number.NaN : Number(text);
  return Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

/**
 * Decodes standard or URL-safe base64, with or without padding and line breaks. Node would accept anything.
 */
function bytesOf(text: string): Uint8Array {
  // Each expression here takes linear time: the text may have millions of characters.
  const padding = text.indexOf("=");
  const digits = padding < 0 ? text : text.slice(0, padding);
  const isPadded = padding < 0 || /^={1,2}[\r\n\t ]*$/.test(text.slice(padding));
  if (!isPadded || /[^\w+/\r\n\t -]/.test(digits) || lengthOf(digits) % 4 === 1)
    throw new NoJson("illegal base64 data");
  return Buffer.from(text, "base64");
}

/** Length without white space. */
function lengthOf(digits: string): number {
  let length = 0;
  for (let at = 0; at < digits.length; at += 1) if (digits.charCodeAt(at) > 0x20) length += 1;
  return length;
}
