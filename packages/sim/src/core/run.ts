import { stretched } from "leasehold/inner/common/clock-rates.js";
import { noticedMsMax } from "leasehold/inner/etcd/guarantees.js";
import { SimRandom } from "../kit/random.js";
import { type Batch, type BatchOptions, type SimResult, simulateSeeds } from "../kit/simulator.js";
import { CoreHazards } from "./hazards.js";
import { Aftermath } from "./checkers/aftermath.js";
import { LeaseKeys } from "./checkers/lease-keys.js";
import { LeaseLife } from "./checkers/lease-life.js";
import { LeaseNames } from "./checkers/lease-names.js";
import { Lines } from "./checkers/lines.js";
import { Linearizability } from "./checkers/linearizability.js";
import { checkMembers } from "./checkers/membership.js";
import { checkProgress } from "./checkers/progress.js";
import { Ranges } from "./checkers/ranges.js";
import { Refreshes } from "./checkers/refreshes.js";
import { RightsJudge } from "./checkers/rights.js";
import { checkSpace } from "./checkers/space.js";
import { StreamWatches } from "./checkers/stream-watches.js";
import { Watches } from "./checkers/watches.js";
import { Claims } from "./holders/claims.js";
import { Holders } from "./holders/holders.js";
import { drawHolders, HoldersStage, nameOf } from "./holders/stage.js";
import { type CoreCounters, coreCounters } from "./world/counters.js";
import { type CoreForm, type CorePlan, drawCorePlan } from "./world/plan.js";
import { BulkClient, bulkPrefix } from "./programs/bulk-client.js";
import { LeaseClient } from "./programs/lease-client.js";
import { leasePrefix, MassLeases } from "./programs/mass-leases.js";
import { Operator } from "./programs/operator.js";
import { Restorer } from "./programs/restorer.js";
import { RegisterClient, registersIn } from "./programs/register-client.js";
import { RightsClient } from "./programs/rights-client.js";
import { StreamClient } from "./programs/stream-client.js";
import { WatchClient } from "./programs/watch-client.js";
import { WideWriter } from "./programs/wide-writer.js";
import type { CoreInvariant } from "./world/invariants.js";
import { CoreWorld, drawRate } from "./world/world.js";

export interface CoreSimOptions {
  readonly seed: number;
  /** The run ends only when one of these is violated. */
  readonly only?: readonly CoreInvariant[] | undefined;
  /** Overrides of the drawn plan. */
  readonly plan?: Partial<CorePlan> | undefined;
  readonly story?: ((line: string) => void) | undefined;
}

export type CoreSimResult = SimResult<CorePlan, CoreInvariant, CoreCounters>;

export type CoreBatch = Batch<CoreSimResult>;

/** The random stream of the rates of clients' clocks. Seeds of runs are far smaller. */
const rateStream = 2 ** 50;

/** The random stream of processes with leases. */
const holdersStream = 2 ** 49;

/** The random stream for streams of watches. */
const streamsStream = 2 ** 52;

/** Without faults every program with leases is served within this time, even if each request takes 0.4 s. */
const holdersMsMax = 150_000;

/** Unreleased leases have expired after this time. */
const leftoversMs = 15_000;

/** The last of these prefixes has many keys but few of the events. */
const watchedPrefixes = ["k", leasePrefix, bulkPrefix, `${bulkPrefix}000`];

/** One run of a consistent core. The seed decides everything in it. */
export async function simulateCore({
  seed,
  only,
  plan: changed,
  story,
}: CoreSimOptions): Promise<CoreSimResult> {
  const random = new SimRandom(seed);
  const rates = new SimRandom(seed + rateStream);
  const plan = { ...drawCorePlan(seed, random), ...changed };
  const asserted = only && ((invariant: CoreInvariant) => only.includes(invariant));
  const world = new CoreWorld(plan, random, { story, asserted });
  const { report, reference } = world;
  const life = new LeaseLife(report, () => world.nowMs, plan.clockRateError);
  for (const observer of [life, new LeaseKeys(report), new LeaseNames(report)]) reference.attach(observer);
  const history = new Linearizability(report);
  world.whenReplaced((state) => history.replaced(registersIn(state), world.nowMs));
  const refreshes = new Refreshes(world);
  const watches = new Watches(world);
  const watchers = Array.from(
    { length: plan.watchClients },
    (_, index) =>
      new WatchClient(world, watches, watchedPrefixes[index % watchedPrefixes.length]!, index === 3),
  );
  for (let index = 0; index < plan.registerClients; index += 1)
    new RegisterClient(world, history, `c${index}`).begin();
  for (let index = 0; index < plan.leaseClients; index += 1)
    new LeaseClient(world, life, refreshes, `l${index}`, drawRate(rates, plan.clockRateError)).begin();
  for (const watcher of watchers) watcher.begin();
  if (plan.bulkKeys > 0) new BulkClient(world, new Ranges(world)).begin();
  if (plan.massLeases !== undefined) new MassLeases(world, plan.massLeases).begin();
  if (plan.membershipEveryMs !== undefined) new Operator(world).begin();
  if (plan.restores !== undefined) new Restorer(world).begin();
  if (plan.rights === true) {
    const judge = new RightsJudge(world);
    reference.attach(judge);
    new RightsClient(world, judge).begin();
  }
  const streams = startStreams(world);
  const holders = plan.forms && startHolders(world, plan.forms);
  new CoreHazards(world).begin();
  await world.run(plan.endMs);
  if (holders !== undefined) await serveAll(world, holders);
  world.guard(() => {
    holders?.check();
    checkProgress(world);
    checkMembers(world);
    checkSpace(world);
    if (!history.judge()) world.counters.undecided += 1;
    for (const watcher of watchers) watches.upToDate(watcher.prefix, watcher.next);
    for (const stream of streams) stream.settled();
  });
  world.counters.leasesEnded = life.ended;
  const { violation, hash, counters } = world;
  const where = `${plan.servers} servers`;
  return { seed, plan, where, violation, traceHash: hash.digest(), counters };
}

/** Streams with several watches, and a writer for them. */
function startStreams(world: CoreWorld): readonly StreamClient[] {
  const { seed, streamClients = 0 } = world.plan;
  if (streamClients === 0) return [];
  const random = new SimRandom(seed + streamsStream);
  const judge = new StreamWatches(world);
  new WideWriter(world, random).begin();
  const clients = Array.from({ length: streamClients }, () => new StreamClient(world, judge, random));
  for (const client of clients) client.begin();
  return clients;
}

/** Processes with leases, and their checkers. */
function startHolders(world: CoreWorld, forms: readonly CoreForm[]): HoldersStage {
  const { seed, clockRateError } = world.plan;
  const random = new SimRandom(seed + holdersStream);
  const drawn = drawHolders(forms, random, clockRateError);
  const plan = { ...drawn, stepEveryMs: world.plan.holderStepEveryMs ?? drawn.stepEveryMs };
  // In whole seconds, by a slow clock of the leader.
  const keptMs = stretched(stretched(plan.ttlMs, clockRateError) + 1_000, clockRateError);
  const claims = new Claims(world);
  const lines = new Lines(world.report, nameOf.fair);
  const aftermath = new Aftermath(world, keptMs + noticedMsMax);
  const stage = new HoldersStage(world, plan, random, { claims, lines, aftermath });
  world.reference.attach(lines);
  new Holders(stage).begin();
  return stage;
}

/** Runs until every program has been served (within a bound) and the remaining leases have ended. */
async function serveAll(world: CoreWorld, holders: HoldersStage): Promise<void> {
  const lastMs = world.plan.stableFromMs + holdersMsMax;
  while (holders.missing.length > 0 && world.nowMs < lastMs && world.violation === undefined)
    await world.run(world.nowMs + 1_000);
  await world.run(world.nowMs + leftoversMs);
}

export const simulateCoreMany = (options: BatchOptions<CoreSimOptions>): Promise<CoreBatch> =>
  simulateSeeds(simulateCore, coreCounters(), options);
