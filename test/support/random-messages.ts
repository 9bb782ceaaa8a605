import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  type MessageInitShape,
  ScalarType,
} from "@bufbuild/protobuf";
import fc from "fast-check";

const signed = (bits: number) =>
  fc.bigInt({ min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n });
const unsigned = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n });

// Shared, as making this takes longer than drawing from it.
const strings = fc.string({ unit: "binary", maxLength: 5 });

function scalarOf(scalar: ScalarType): fc.Arbitrary<unknown> {
  if (scalar === ScalarType.BYTES) return fc.uint8Array({ maxLength: 9 });
  if (scalar === ScalarType.STRING) return strings;
  if (scalar === ScalarType.BOOL) return fc.boolean();
  if (scalar === ScalarType.INT64) return signed(64);
  if (scalar === ScalarType.UINT64) return unsigned(64);
  if (scalar === ScalarType.INT32) return signed(32).map(Number);
  if (scalar === ScalarType.UINT32) return unsigned(32).map(Number);
  throw new Error(`no request has ${ScalarType[scalar]}`);
}

function oneOf(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return messageOf(field.message, depth - 1);
  if (field.enum !== undefined)
    return fc.oneof(fc.constantFrom(...field.enum.values.map(({ number }) => number)), fc.constant(99));
  return scalarOf(field.scalar!);
}

/** Any message of this kind. */
export function messageOf(described: DescMessage, depth: number): fc.Arbitrary<Message> {
  if (depth === 0) return fc.constant(create(described));
  const values: Record<string, fc.Arbitrary<unknown>> = {};
  for (const field of described.fields.filter(({ oneof }) => oneof === undefined)) {
    const one = oneOf(field, depth);
    values[field.localName] = field.fieldKind === "list" ? fc.array(one, { maxLength: 3 }) : one;
  }
  for (const { fields, localName } of described.oneofs) {
    const cases = fields.map((field) =>
      oneOf(field, depth).map((value) => ({ case: field.localName, value })),
    );
    values[localName] = fc.oneof(...cases);
  }
  return fc
    .record(values, { requiredKeys: [] })
    .map((content) => create(described, content as MessageInitShape<DescMessage>));
}
