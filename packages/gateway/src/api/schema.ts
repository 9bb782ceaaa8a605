import { LeaseholdError, isRecord } from "leasehold/common";

/** The part of JSON Schema that the API's requests need. One table both validates and documents them. */
export interface Field {
  readonly type: "string" | "integer" | "boolean" | "array" | "duration" | "json";
  readonly description: string;
  readonly isRequired?: true;
  readonly choices?: readonly string[];
  readonly lengthMax?: number;
  readonly min?: number;
  readonly max?: number;
}

export type Fields = Readonly<Record<string, Field>>;

/**
 * Validates the body of a request against the fields.
 *
 * @throws LeaseholdError `INVALID_CONFIG`, which names the field
 */
export function readFields(body: unknown, fields: Fields): Record<string, unknown> {
  if (!isRecord(body)) throw wrong("the body must be a JSON object");
  for (const name of Object.keys(body))
    if (!Object.hasOwn(fields, name))
      throw wrong(
        `there is no field ${JSON.stringify(name.slice(0, 64))}; there are ${Object.keys(fields).join(", ")}`,
      );
  const read: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = Object.hasOwn(body, name) ? body[name] : undefined;
    if (value === undefined) {
      if (field.isRequired === true) throw wrong(`the field ${name} is missing`);
      continue;
    }
    const why = whyNot(value, field);
    if (why !== undefined) throw wrong(`the field ${name} must be ${why}`);
    read[name] = value;
  }
  return read;
}

function whyNot(value: unknown, { type, choices, lengthMax, min, max }: Field): string | undefined {
  switch (type) {
    case "string":
      if (typeof value !== "string" || value.length > (lengthMax ?? Infinity))
        return lengthMax === undefined ? "text" : `text of up to ${lengthMax} characters`;
      return choices === undefined || choices.includes(value) ? undefined : choices.join(" or ");
    case "integer":
      if (Number.isSafeInteger(value) && Number(value) >= (min ?? 0) && Number(value) <= (max ?? Infinity))
        return undefined;
      return `a whole number from ${min ?? 0} to ${max ?? "any"}`;
    case "boolean":
      return typeof value === "boolean" ? undefined : "true or false";
    case "array":
      return Array.isArray(value) &&
        value.length <= (max ?? Infinity) &&
        value.every((each) => typeof each === "string" && each.length <= (lengthMax ?? Infinity))
        ? undefined
        : `a list of up to ${max} texts of up to ${lengthMax} characters`;
    case "duration":
      return typeof value === "number" || (typeof value === "string" && value.length <= 32)
        ? undefined
        : 'milliseconds, or text such as "15s"';
    case "json":
      return undefined;
  }
}

const wrong = (why: string): LeaseholdError => new LeaseholdError("INVALID_CONFIG", why);

/** The fields as JSON Schema. */
export function jsonSchemaOf(fields: Fields): object {
  return {
    type: "object",
    additionalProperties: false,
    required: Object.keys(fields).filter((name) => fields[name]?.isRequired === true),
    properties: Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [
        name,
        { ...typeOf(field), description: field.description },
      ]),
    ),
  };
}

function typeOf({ type, choices, lengthMax, min, max }: Field): object {
  const length = lengthMax !== undefined && { maxLength: lengthMax };
  switch (type) {
    case "string":
      return { type, ...length, ...(choices !== undefined && { enum: choices }) };
    case "integer":
      return { type, minimum: min ?? 0, ...(max !== undefined && { maximum: max }) };
    case "boolean":
      return { type };
    case "array":
      return {
        type,
        items: { type: "string", ...length },
        minItems: 1,
        ...(max !== undefined && { maxItems: max }),
      };
    case "duration":
      return {
        oneOf: [
          { type: "number", minimum: 0 },
          { type: "string", examples: ["15s"] },
        ],
      };
    case "json":
      return {};
  }
}
