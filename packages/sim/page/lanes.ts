import type { Recording } from "../src/theatre/recording.js";

/** A time in which a participant held a resource, or a member guarded it for one. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly holder: string;
  readonly token: number;
}

export interface Lane {
  readonly name: string;
  readonly does: "guards" | "holds";
  readonly spans: readonly Span[];
}

/** What each member guarded and each node held of a resource, over the whole run. */
export function lanesOf({ steps }: Recording, resource: string): readonly Lane[] {
  const nodes = steps[0]?.nodes ?? [];
  const all = nodes.map(() => ({ guards: [] as Span[], holds: [] as Span[] }));
  for (const [index, { atMs, nodes: now }] of steps.entries()) {
    const nextMs = steps[index + 1]?.atMs ?? atMs;
    for (const [at, node] of now.entries()) {
      if (node.life === "down") continue;
      const claim = node.claims.find((each) => each.resource === resource && each.isHeld);
      if (claim !== undefined)
        add(all[at]!.holds, spanOf(atMs, Math.min(nextMs, claim.untilMs), node.name, claim.token));
      const entry = node.entries.find((each) => each.resource === resource);
      if (entry !== undefined && entry.holder !== "" && !entry.isReleased)
        add(all[at]!.guards, spanOf(atMs, Math.min(nextMs, entry.guardsUntilMs), entry.holder, 0));
    }
  }
  const lane = (does: Lane["does"]) => (at: number) => ({
    name: nodes[at]!.name,
    does,
    spans: all[at]![does],
  });
  const indices = [...nodes.keys()];
  const members = indices.filter((at) => nodes[at]!.isMember).map(lane("guards"));
  const holders = indices
    .filter((at) => !nodes[at]!.isMember || all[at]!.holds.length > 0)
    .map(lane("holds"));
  return [...members, ...holders];
}

const spanOf = (fromMs: number, toMs: number, holder: string, token: number): Span => ({
  fromMs,
  toMs,
  holder,
  token,
});

function add(spans: Span[], span: Span): void {
  if (span.toMs <= span.fromMs) return;
  const last = spans.at(-1);
  const isSame = last?.holder === span.holder && last.token === span.token && last.toMs >= span.fromMs;
  if (isSame) spans[spans.length - 1] = { ...last, toMs: Math.max(last.toMs, span.toMs) };
  else spans.push(span);
}

/** Tokens and ballots are long numbers: their order is what matters. */
export function ranks(lanes: readonly Lane[]): ReadonlyMap<number, number> {
  const tokens = lanes.flatMap(({ spans }) => spans.map(({ token }) => token)).filter((token) => token > 0);
  const sorted = [...new Set(tokens)].sort((one, other) => one - other);
  return new Map(sorted.map((token, at) => [token, at + 1]));
}
