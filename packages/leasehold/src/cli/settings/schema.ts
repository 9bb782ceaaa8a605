import type { Kind } from "./kinds.js";
import { type SettingKey, settingKeys, settingOf } from "./table.js";

type Schema = Record<string, unknown>;

const text = { type: "string", minLength: 1 };
const duration = { type: "string", pattern: String.raw`^\d+(\.\d+)?(ms|s|m|h)$` };
const address = { type: "string", pattern: String.raw`^(\[[0-9A-Fa-f:.%\w]+\]|[A-Za-z0-9._-]+):\d{1,5}$` };

function schemaOfKind(kind: Kind): Schema {
  switch (kind.type) {
    case "duration":
      return { anyOf: [duration, { type: "number", minimum: 0 }] };
    case "address":
      return address;
    case "addresses":
      return { type: "object", additionalProperties: address };
    case "list":
      return { anyOf: [text, { type: "array", items: text }] };
    case "flag":
      return { type: "boolean" };
    case "count":
      return { type: "integer", minimum: kind.min, maximum: kind.max };
    case "fraction":
      return { type: "number", minimum: 0, exclusiveMaximum: 0.5 };
    case "choice":
      return { enum: kind.choices };
    default:
      return text;
  }
}

function propertyOf(key: SettingKey): Schema {
  const { what, initial, kind, reload } = settingOf(key);
  const lines = [
    what,
    ...(initial === undefined ? [] : [`Default: ${initial}.`]),
    ...(reload === true ? ["SIGHUP reloads it."] : []),
  ];
  return { description: lines.join("\n"), ...schemaOfKind(kind) };
}

/** The JSON Schema of a settings file, in draft 7, which all editors support. */
export function schemaOfSettings(): Schema {
  const shape = (properties: Schema): Schema => ({
    type: "object",
    properties: { ...properties, $comment: { type: "string" } },
    additionalProperties: false,
  });
  const properties: Schema = { $schema: { type: "string" } };
  const sections = new Map<string, Schema>();
  for (const key of settingKeys) {
    // Secrets are not allowed in files.
    if (settingOf(key).isSecret === true) continue;
    const [section = "", name] = key.split(".");
    if (name === undefined) properties[key] = propertyOf(key);
    else sections.set(section, { ...sections.get(section), [name]: propertyOf(key) });
  }
  for (const [section, inner] of sections) properties[section] = shape(inner);
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Settings of Leasehold",
    ...shape(properties),
  };
}
