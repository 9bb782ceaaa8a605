import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import type { Membership } from "leasehold/inner/flease/views/view.js";
import type { SimRandom } from "../../kit/random.js";

/** Runs in which the members change all the time. */
export interface ViewsPlan {
  /** The members of the initial view; the settings name all that may ever be members. */
  readonly first: Membership;
  /** The length of the calm that the same run has without changes, ms. */
  readonly stayingCalmMs: number;
  /**
   * Several operators may begin changes at the same time. These may get stuck halfway, so L1 is not checked.
   */
  readonly rivals: boolean;
  /**
   * A crash may destroy a member's file. At the end too few members may have a vote, so L1 is not checked.
   */
  readonly lossRate: number;
  /** The mean time between two attempts to change the members. */
  readonly changeEveryMs: number;
  /** Share of messages that carry the sender's view. */
  readonly noteRate: number;
  /** Stamps and numbers of views are encoded as on the wire. */
  readonly asBytes?: boolean;
}

/** The part of a plan that depends on changes of the members. */
interface Changing {
  readonly settings: FleaseSettings;
  readonly agents: readonly { readonly node: number; readonly resource: string }[];
  readonly stormMs: number;
  readonly calmMs: number;
  readonly waist: { readonly nodes: readonly number[] };
  readonly views?: ViewsPlan | undefined;
}

/** A change takes a full wait: without more time there would hardly ever be two in a row. */
const stormStretch = 1.5;

/** Drawn from a stream of its own, so the rest of the run stays the same. */
export function drawViews<P extends Changing>(plan: P, random: SimRandom): P {
  if (plan.waist.nodes.length > 0 || random.chance(0.5)) return plan;
  const { settings, agents } = plan;
  const { members, cellSize, ttlMaxMs } = settings;
  const spares = 1 + random.below(3);
  const all = Array.from({ length: members.length + spares }, (_, index) => `m${index}`);
  const stormMs = stormStretch * plan.stormMs;
  const rivals = random.chance(0.3);
  const lossRate = random.chance(0.4) ? 0.5 : 0;
  return {
    ...plan,
    settings: { ...settings, members: all },
    agents: agents.map(({ node, resource }) => ({
      node: node < members.length ? node : node + spares,
      resource,
    })),
    stormMs,
    calmMs: plan.calmMs === 0 || rivals || lossRate > 0 ? 0 : plan.calmMs + settings.waitWallMs,
    views: {
      stayingCalmMs: plan.calmMs,
      first: { members, cellSize: members.length > 3 && random.chance(0.5) ? 3 : cellSize },
      rivals,
      lossRate,
      changeEveryMs: random.magnitude(0.05, 0.5) * ttlMaxMs,
      noteRate: random.pick([0.05, 0.3, 1]),
    },
  };
}

/** More than a set of 32 bits has, and cells of three of them. */
const manyMembers = 40;

/** Such a run has many more messages than others, and its events happen early, so it is short. */
const manyStormLeases = 5;

/** Clients alone want leases of many members, which change all the time, one change after the other. */
export function withManyMembers<
  P extends Changing & { readonly clients: number; readonly resources: readonly string[] },
>(plan: P): P {
  const { settings, resources } = plan;
  const members = Array.from({ length: manyMembers }, (_, index) => `m${index}`);
  const clients = 3;
  return {
    ...plan,
    settings: { ...settings, members, cellSize: 3 },
    clients,
    agents: resources.flatMap((resource) =>
      Array.from({ length: clients }, (_, index) => ({ node: manyMembers + index, resource })),
    ),
    stormMs: manyStormLeases * settings.ttlMaxMs,
    calmMs: 3 * settings.ttlMaxMs + 2 * settings.waitWallMs,
    views: {
      stayingCalmMs: 0,
      first: { members: members.slice(0, -2).sort(), cellSize: 3 },
      rivals: false,
      changeEveryMs: 0.1 * settings.ttlMaxMs,
      noteRate: 0.3,
      asBytes: true,
    },
  };
}

/** The same run as if its members stayed. */
export function withoutViews<P extends Changing>(plan: P): P {
  const { views, settings, agents } = plan;
  if (views === undefined) return plan;
  const { members } = views.first;
  const spares = settings.members.length - members.length;
  return {
    ...plan,
    settings: { ...settings, members },
    agents: agents.map(({ node, resource }) => ({
      node: node < members.length ? node : node - spares,
      resource,
    })),
    stormMs: plan.stormMs / stormStretch,
    calmMs: views.stayingCalmMs,
    views: undefined,
  };
}

/** A random change of the members: one is added, removed or replaced, or the size of cells changes. */
export function drawChange(
  { members, cellSize }: Membership,
  settings: FleaseSettings,
  random: SimRandom,
): Membership {
  const added = random.pick(settings.members.filter((id) => !members.includes(id)));
  const removed = random.pick(members);
  const what = random.below(3);
  const stay = what === 0 || members.length <= 2 ? members : members.filter((id) => id !== removed);
  const came = what === 1 || added === undefined ? stay : [...stay, added];
  // Two at once, which is refused.
  const next = random.chance(0.1) && came.length > 2 ? came.filter((id) => id !== came[0]) : came;
  const wanted = random.chance(0.3) ? random.pick([3, next.length]) : cellSize;
  const all = cellSize === members.length && wanted === cellSize;
  return { members: [...next].sort(), cellSize: all ? next.length : Math.min(wanted, next.length) };
}
