import type { FleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import type { SimRandom } from "../../kit/random.js";
import { greatest } from "leasehold/inner/common/lists.js";

/** Programs on the lease layer. Rates are probabilities at each turn of a program. */
export interface WaistPlan {
  /** Nodes whose programs use the waist; programs of other nodes drive their proposers directly. */
  readonly nodes: readonly number[];
  /** Programs of one node that want the same resource. */
  readonly programsEach: number;
  /** Additional callers in one node, each of which wants any of the names. */
  readonly jobsEach: number;
  /** Programs of one node that take counted and shared leases. */
  readonly sharersEach: number;
  /** Leads instead of holding. */
  readonly electRate: number;
  /** Tries, and does not wait. */
  readonly tryRate: number;
  /** Lists or inspects leases. */
  readonly queryRate: number;
  /** Asks the holder to release, or breaks its lease. */
  readonly breakRate: number;
  /** Ends a wait, or a leadership, by a signal. */
  readonly abortRate: number;
  /** Takes a lease that is not renewed, or only for a short time. */
  readonly shortRate: number;
}

export const noWaist: WaistPlan = {
  nodes: [],
  programsEach: 0,
  jobsEach: 0,
  sharersEach: 0,
  electRate: 0,
  tryRate: 0,
  queryRate: 0,
  breakRate: 0,
  abortRate: 0,
  shortRate: 0,
};

/** The part of a plan that determines which programs want which resources. */
export interface Populated {
  readonly settings: FleaseSettings;
  readonly clients: number;
  readonly resources: readonly string[];
  /** The (node, resource) pairs with a program, as indices. */
  readonly agents: readonly { readonly node: number; readonly resource: string }[];
}

/** The part of a plan that is drawn for the lease layer and its companions. */
interface Peopling {
  readonly waist: WaistPlan;
  readonly settings: FleaseSettings;
  /** See `NetworkPlan`. */
  readonly readEveryMs: number;
  /** See `ChaosPlan`. */
  readonly clientEveryMs: number;
}

/** Cell size in runs with five members and cells. */
const cellSize = 3;

/** The share of runs with programs that share leases: each of them costs several others. */
const sharersRate = 0.15;

/**
 * After the faults each caller wants its resource once more. Each may delay the next by this share of the
 * longest lease.
 */
const turnLeases = 1.2;

/** Retries of the waist, and the time after which a bar is forgotten. */
const patienceMs = 8_000;

/**
 * Draws later additions: the lease layer, clients that join and leave, cells. They have a stream of their
 * own, so that the rest of a run is as if they did not exist.
 */
export function drawWaist({ settings, clients }: Populated, random: SimRandom): Peopling {
  const members = settings.members.length;
  const waist = random.chance(0.5) ? drawPrograms(members + clients, random) : noWaist;
  const comesAndGoes = random.chance(0.5) ? random.magnitude(0.5, 4) * settings.ttlMaxMs : Infinity;
  const cells = members > cellSize && random.chance(0.5);
  const jobsEach = waist.nodes.length > 0 && random.chance(0.4) ? random.pick([1, 2, 4]) : 0;
  const readEveryMs = random.chance(0.5) ? random.magnitude(0.05, 0.5) * settings.rpcTimeoutMs : 0;
  return {
    // Drawn last, so that earlier draws of a seed stay the same.
    waist: { ...waist, jobsEach, sharersEach: waist.nodes.length > 0 && random.chance(sharersRate) ? 2 : 0 },
    readEveryMs: jobsEach > 0 ? readEveryMs : 0,
    clientEveryMs: clients > 0 ? comesAndGoes : Infinity,
    settings: cells ? { ...settings, cellSize } : settings,
  };
}

/** The longest time until every program that wants one resource has had it. */
export function turnsMs({
  agents,
  resources,
  settings,
  waist,
}: Populated & { readonly waist: WaistPlan }): number {
  if (waist.nodes.length === 0) return 0;
  const wanting = resources.map((resource) => {
    const nodes = agents.filter((agent) => agent.resource === resource);
    return nodes.reduce((sum, { node }) => sum + (waist.nodes.includes(node) ? waist.programsEach : 1), 0);
  });
  return (greatest(wanting) + 4) * turnLeases * settings.ttlMaxMs + patienceMs;
}

function drawPrograms(nodes: number, random: SimRandom): WaistPlan {
  const everybody = random.chance(0.4);
  const sometimes = (value: number) => (random.chance(0.5) ? value : 0);
  const drawn = Array.from({ length: nodes }, (_, node) => node).filter(
    () => everybody || random.chance(0.5),
  );
  return {
    nodes: drawn.length === 0 ? [random.below(nodes)] : drawn,
    programsEach: random.pick([1, 2, 3]),
    electRate: sometimes(random.between(0.1, 0.6)),
    tryRate: sometimes(random.between(0, 0.4)),
    queryRate: sometimes(random.between(0, 0.3)),
    breakRate: sometimes(random.between(0, 0.15)),
    abortRate: sometimes(random.between(0, 0.5)),
    shortRate: sometimes(random.between(0, 0.4)),
    jobsEach: 0,
    sharersEach: 0,
  };
}

/** In fair weather programs only acquire and hold. */
export function allOnWaist(nodes: number): WaistPlan {
  return { ...noWaist, nodes: Array.from({ length: nodes }, (_, node) => node), programsEach: 1 };
}
