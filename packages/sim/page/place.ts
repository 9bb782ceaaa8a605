import { featureNames } from "../src/theatre/runs.js";

/** The part of the address that says what to show. */
export type Place =
  | { readonly kind: "scene"; readonly id: string }
  | {
      readonly kind: "run";
      readonly seed: number;
      readonly mode: string | undefined;
      readonly without: readonly string[];
    }
  | { readonly kind: "wrong"; readonly text: string };

/** The same checks as in `leasehold sim`: a different run from the requested one would mislead. */
function wrongIn(seed: string, mode: string | undefined, without: readonly string[]): string | undefined {
  if (!/^\d+$/.test(seed) || !Number.isSafeInteger(Number(seed)))
    return `A seed is a whole number below 2^53, and not "${seed}".`;
  if (mode !== undefined && !/^[a-g]$/.test(mode)) return `Clocks are a to g, and not "${mode}".`;
  const unknown = without.find((name) => !featureNames.includes(name));
  return unknown === undefined ? undefined : `No feature is called "${unknown}".`;
}

export function placeOf(hash: string): Place {
  const [, id] = /^#\/scene\/([a-z]+)$/.exec(hash) ?? [];
  if (id !== undefined) return { kind: "scene", id };
  const [, query] = /^#\/run\?(.*)$/.exec(hash) ?? [];
  if (query === undefined) return { kind: "scene", id: "acquire" };
  const words = new URLSearchParams(query);
  const seed = words.get("seed") ?? "";
  const mode = words.get("mode") ?? undefined;
  const without = (words.get("without") ?? "").split(",").filter((word) => word !== "");
  const text = wrongIn(seed, mode, without);
  return text === undefined ? { kind: "run", seed: Number(seed), mode, without } : { kind: "wrong", text };
}
