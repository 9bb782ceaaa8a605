/** What the address says to show. */
export type Place =
  | { readonly kind: "scene"; readonly id: string }
  | {
      readonly kind: "run";
      readonly seed: number;
      readonly mode: string | undefined;
      readonly without: readonly string[];
    };

export function placeOf(hash: string): Place {
  const [, id] = /^#\/scene\/([a-z]+)$/.exec(hash) ?? [];
  if (id !== undefined) return { kind: "scene", id };
  const [, query] = /^#\/run\?(.*)$/.exec(hash) ?? [];
  if (query === undefined) return { kind: "scene", id: "acquire" };
  const words = new URLSearchParams(query);
  const seed = Number(words.get("seed"));
  return {
    kind: "run",
    seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : 1,
    mode: words.get("mode") ?? undefined,
    without: (words.get("without") ?? "").split(",").filter((word) => word !== ""),
  };
}
