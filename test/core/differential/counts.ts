import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Sequence } from "./action.js";
import type { Compared } from "./pair.js";

type Numbers = Map<string, number>;

/** The requests in all sequences, and their outcomes. */
export class Counts {
  /** By method, and by field of a request or answer at any depth. */
  readonly #answered: Numbers = new Map();
  readonly #fields: Numbers = new Map();
  readonly #refused: Numbers = new Map();
  readonly #told: Numbers = new Map();
  /** Requests that were left out, by known difference. */
  readonly leftOut: Numbers = new Map();
  #sequences = 0;
  /** Differences that did not recur with more time: they are due to a busy machine. */
  onceOnly = 0;

  took({ actions }: Sequence, { answers, beside }: Compared): void {
    this.#sequences += 1;
    for (const [at, answer] of answers.entries()) {
      const { service, method, request, waitsAs } = actions[at]!;
      const later = waitsAs === undefined ? undefined : beside[waitsAs];
      const found = answer === "waits" && later !== undefined ? later : answer;
      if (found === "waits") add(this.#answered, `${service}.${method} that waits to the end`);
      else if (typeof found === "string") add(this.#refused, `${method}: ${found}`);
      else {
        add(this.#answered, `${service}.${method}`);
        for (const field of fieldsOf(request)) add(this.#fields, `${method} ${field}`);
        for (const field of fieldsOf(found)) add(this.#fields, `${method} → ${field}`);
        if (method === "Txn") add(this.#fields, `Txn ${depthOf(request)} deep`);
      }
    }
    for (const lines of Object.values(beside).filter(Array.isArray))
      for (const line of lines as JsonObject[])
        for (const field of line["kv"] === undefined ? Object.keys(line) : eventFields(line))
          add(this.#told, field);
  }

  get text(): string {
    const listed = (counts: Numbers) =>
      [...counts].toSorted(([, a], [, b]) => b - a).map(([name, count]) => `${count} ${name}`);
    return [
      `${this.#sequences} sequences; ${this.onceOnly} differed once, and not again with more time`,
      `answered: ${listed(this.#answered).join(", ")}`,
      `refused: ${listed(this.#refused).join(", ")}`,
      `told to watches: ${listed(this.#told).join(", ")}`,
      `with: ${listed(this.#fields).join(", ")}`,
      `left out: ${listed(this.leftOut).join(", ")}`,
    ].join("\n");
  }
}

function add(counts: Numbers, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function eventFields({ type = "PUT", prevKv }: JsonObject): string[] {
  return [prevKv === undefined ? String(type) : `${String(type)} with what was before`];
}

/** Names of fields and of enumeration values, each once. */
function fieldsOf(json: JsonValue, found = new Set<string>()): Set<string> {
  if (typeof json !== "object" || json === null) return found;
  for (const [name, value] of Object.entries(json)) {
    if (!Array.isArray(json) && name !== "header") found.add(name);
    if (name === "sortOrder" || name === "sortTarget") found.add(`${name} ${String(value)}`);
    fieldsOf(value, found);
  }
  return found;
}

function depthOf(json: JsonValue): number {
  if (typeof json !== "object" || json === null) return 0;
  const inner = Math.max(0, ...Object.values(json).map(depthOf));
  return inner + ("requestTxn" in json ? 1 : 0);
}
