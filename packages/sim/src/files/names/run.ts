import { livePrefix, uploadPrefix } from "@leasehold/files/inner/protocol/keys.js";
import { type Batch, type BatchOptions, type SimResult, simulateSeeds } from "../../kit/simulator.js";
import { SimRandom } from "../../kit/random.js";
import { FilesHazards } from "../hazards.js";
import { drawFilesPlan, filesFeatures, type FilesInvariant, type FilesPlan } from "../plan.js";
import type { FilesSimOptions } from "../run.js";
import { FilesWorld, type Machine } from "../world.js";
import { NamesClient } from "./client.js";
import { Follower } from "./follower.js";
import { type Acknowledged, judgeChanges } from "./judge-changes.js";
import { judgeNames, type NamesOperations } from "./history.js";
import { type NamesCounters, namesCounters } from "./plan.js";

export type NamesSimResult = SimResult<FilesPlan, FilesInvariant, NamesCounters>;
export type NamesBatch = Batch<NamesSimResult>;

/** Time for nodes to join, and for names to be served. */
const beginMs = 1_500;
/** Time for followers that should see everything to begin before the first change. */
const openMs = 500;
/** Time until everything affected by faults is served and complete again. */
const settleMs = 5_000;
/** Time for the last calls to end, for copies to be completed, and for garbage to be collected. */
const lastMs = 16_000;

/** The random stream for followers, which were added later: other draws stay the same. */
const followStream = 2 ** 49;

/** One run of files by path: names and contents, with several writers for each path. */
export async function simulateNames(options: FilesSimOptions): Promise<NamesSimResult> {
  const { seed, makeCluster, only, plan: changed, without, story } = options;
  const random = new SimRandom(seed);
  const drawn = {
    ...drawFilesPlan(seed, random),
    clients: random.pick([2, 4]),
    // The fault is for a fixed list of nodes.
    wipeBehindEveryMs: Infinity,
    ...(random.chance(0.5) && { spares: 2, nodesEveryMs: random.pick([150, 500]) }),
  };
  const following = new SimRandom(seed + followStream);
  const followed = {
    followers: following.below(3),
    // This limit is soon exceeded while a follower pauses, so the follower has to begin again.
    keptChanges: following.chance(0.3) ? 1 : 10_000,
    recordsMin: following.pick([10, 40, 2_000]),
  };
  const plan = filesFeatures.without(
    { ...drawn, ...followed, thinkMs: Math.max(60, 2 * drawn.thinkMs), ...changed },
    without,
  );
  const counters = namesCounters();
  const world = new FilesWorld(plan, random, counters, makeCluster, { only, story, isNamed: true });
  counters.runs = 1;
  world.begin();
  await world.cluster.advance(beginMs);
  const operations: NamesOperations = [];
  const acknowledged: Acknowledged[] = [];
  const followers = Array.from({ length: plan.followers }, () => new Follower(world, counters, following));
  for (const follower of followers) void follower.open(world.machines[0]!);
  if (followers.length > 0) await world.cluster.advance(openMs);
  for (let index = 0; index < plan.clients; index += 1)
    new NamesClient(world, counters, operations, acknowledged, "abcdefgh"[index]!).begin();
  for (const follower of followers) follower.begin();
  new FilesHazards(world).begin();
  await world.cluster.advance(plan.stableFromMs + settleMs);
  const told: Told = { followers, acknowledged };
  const last = finish(world, counters, operations, told).catch((error: unknown) =>
    world.report("progress", `what is served in the end fails: ${String(error)}`),
  );
  await world.cluster.advance(lastMs);
  await Promise.race([last, world.cluster.advance(0)]);
  judge(world, counters, operations);
  for (const { isUp, named } of world.machines) {
    if (!isUp || named === undefined) continue;
    const status = named.status();
    counters.resets += status.counters.resets;
    counters.repaired += status.counters.repaired;
    counters.collected += status.counters.collected;
  }
  counters.rebuilt = counters.wiped;
  const { violation, hash } = world;
  return { seed, plan, where: `${plan.nodes} nodes`, violation, traceHash: hash.digest(), counters };
}

/** Followers, and the changes that they should have seen. */
interface Told {
  readonly followers: readonly Follower[];
  readonly acknowledged: Acknowledged[];
}

/** At the end each file is read; each disk has all contents that belong there, and no others. */
async function finish(
  world: FilesWorld,
  counters: NamesCounters,
  operations: NamesOperations,
  { followers, acknowledged }: Told,
): Promise<void> {
  const client = new NamesClient(world, counters, operations, acknowledged, "z");
  let isDone = false;
  world.after(lastMs - 1_000, () => {
    if (!isDone) world.report("progress", "not all files are served in the end");
  });
  const named = world.machines[0]!.named!;
  let list = await named.nodes();
  for (const machine of world.machines) {
    const isListed = list.nodes.some(({ id }) => id === machine.id);
    if (isListed && !machine.isUp) world.start(machine);
    if (!isListed && machine.isUp) world.crash(machine, false);
  }
  await untilDone(() => client.perform(world.machines[0]!, { kind: "list" }));
  const { files } = await named.list("");
  const reading = world.machines.filter(({ isUp }) => isUp);
  for (const [index, { path }] of files.entries())
    await untilDone(() => client.perform(reading[index % reading.length]!, { kind: "read", path }));
  if (followers.length > 0) {
    const now = new Follower(world, counters, world.random);
    await now.open(world.machines[0]!);
    for (const follower of followers) await follower.end(world.machines[0]!, now.cursor!);
    const uncertain = operations.filter(({ output }) => output === undefined).map(({ input }) => input);
    const parts = followers.map((follower) => follower.parts);
    const wrong = judgeChanges(parts, acknowledged, uncertain, files);
    if (wrong !== undefined) world.report("changes", wrong);
  }
  isDone = true;
  // The longest announcement, the grace of contents, and a few passes.
  await new Promise<void>((resolve) => world.after(world.plan.spares > 0 ? 8_000 : 4_500, resolve));
  list = await named.nodes();
  for (const { id, state, contents } of list.nodes)
    if (state === "draining" && contents > 0)
      world.report("progress", `${id} is drained, and has ${contents} contents in the end`);
  const { router, parts } = named.objects;
  const keepers = world.machines.filter(({ id }) => parts.nodes.includes(id));
  const [first, ...others] = keepers.map((machine) => blocksOf(machine, livePrefix));
  for (const other of others)
    if (other !== first) world.report("agreement", `contents differ in the end: ${first} and ${other}`);
  const blocks = new Map<string, string>();
  for (const machine of world.machines.filter(({ id }) => list.nodes.some((node) => node.id === id))) {
    const ask = { kind: "contents", node: machine.id, after: "", limit: 1_000 } as const;
    const { contents = [] } = await router.names(ask);
    const placed = new Set(contents.map(({ id }) => uploadPrefix + id));
    const here = new Set(keysOf(machine).filter((key) => key.startsWith(uploadPrefix)));
    if ([...placed].sort().join() !== [...here].sort().join())
      world.report("agreement", `${machine.id} has ${[...here].join()}, and not ${[...placed].join()}`);
    for (const key of here) {
      const mine = blocksOf(machine, key);
      if (mine !== (blocks.get(key) ?? mine)) world.report("agreement", `copies of ${key} differ in the end`);
      blocks.set(key, mine);
    }
  }
}

async function untilDone(perform: () => Promise<boolean>): Promise<void> {
  while (!(await perform()));
}

const keysOf = ({ store }: Machine): string[] => store.healthyBlocks().map(({ path }) => path);

function blocksOf({ store }: Machine, prefix: string): string {
  return store
    .healthyBlocks()
    .filter(({ path }) => path.startsWith(prefix))
    .map(({ path, index, tag }) => `${path}/${index} ${tag}`)
    .sort()
    .join(", ");
}

function judge(world: FilesWorld, counters: NamesCounters, operations: NamesOperations): void {
  const { verdict, stuckAt, longest } = judgeNames(operations);
  if (verdict === "unknown") counters.undecided += 1;
  if (verdict !== "violated") return;
  const next = stuckAt.map(({ input, output, calledAt }) => JSON.stringify({ calledAt, input, output }));
  const before = longest.slice(-5).map(({ input, output }) => JSON.stringify({ input, output }));
  world.report(
    "linearizability",
    `after ${before.join(" ")} none of these can be next: ${next.slice(0, 4).join(" ")}`,
  );
}

export const simulateNamesMany = (options: BatchOptions<FilesSimOptions>): Promise<NamesBatch> =>
  simulateSeeds(simulateNames, namesCounters(), options);
