/** The method that Node's `console.log` calls. Without it, Node would print the ground's internals. */
export const inspected = Symbol.for("nodejs.util.inspect.custom");

/** `JSON.stringify` refuses a bigint, so a token becomes a decimal string. */
const withTokensAsText = {
  toJSON(this: object): unknown {
    return plainOf({ ...this });
  },
};

/**
 * The same fields in an object that `JSON.stringify`, and so every HTTP framework's reply, accepts. A copy
 * made by spreading has only the fields.
 */
export function plainData<Fields extends object>(fields: Fields): Fields {
  return Object.assign(Object.create(withTokensAsText) as Fields, fields);
}

function plainOf(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plainOf(inner)]));
}
