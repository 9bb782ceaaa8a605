import { SimRandom } from "../kit/random.js";
import { type Batch, type BatchOptions, type SimResult, simulateSeeds } from "../kit/simulator.js";
import { FilesClient } from "./client.js";
import { FilesHazards } from "./hazards.js";
import { type FileHistories, type FileHistory, judgeFile } from "./history.js";
import {
  drawFilesPlan,
  type FilesCounters,
  filesCounters,
  filesFeatures,
  type FilesInvariant,
  type FilesPlan,
} from "./plan.js";
import { FilesWorld, type MakeCluster } from "./world.js";

export interface FilesSimOptions {
  readonly seed: number;
  readonly makeCluster: MakeCluster;
  /** The run ends only at violations of these. */
  readonly only?: readonly FilesInvariant[] | undefined;
  /** Overrides of the drawn plan. */
  readonly plan?: Partial<FilesPlan> | undefined;
  readonly without?: readonly string[] | undefined;
  readonly story?: ((line: string) => void) | undefined;
}

export type FilesSimResult = SimResult<FilesPlan, FilesInvariant, FilesCounters>;

export type FilesBatch = Batch<FilesSimResult>;

/** Time for nodes to join, and for the first files. */
const beginMs = 1_500;
/** Time for affected files to be served and complete again. */
const settleMs = 5_000;
/** Time for the last calls of each program, one after another, and for the copies after them. */
const lastMs = 6_000;

/** One run of replicated files. The seed decides everything in it. */
export async function simulateFiles({
  seed,
  makeCluster,
  only,
  plan: changed,
  without,
  story,
}: FilesSimOptions): Promise<FilesSimResult> {
  const random = new SimRandom(seed);
  const plan = filesFeatures.without({ ...drawFilesPlan(seed, random), ...changed }, without);
  const counters = filesCounters();
  const world = new FilesWorld(plan, random, counters, makeCluster, { only, story });
  counters.runs = 1;
  world.begin();
  await world.cluster.advance(beginMs);
  const histories = new Map<string, FileHistory>();
  for (let index = 1; index <= plan.files; index += 1)
    histories.set(`f${index}`, { operations: [], uncertain: [] });
  for (let index = 0; index < plan.clients; index += 1)
    new FilesClient(world, histories, "abcdefgh"[index]!).begin();
  new FilesHazards(world).begin();
  await world.cluster.advance(plan.stableFromMs + settleMs);
  const last = readAll(world, histories).catch((error: unknown) =>
    world.report("progress", `what is served in the end fails: ${String(error)}`),
  );
  await world.cluster.advance(lastMs);
  await Promise.race([last, world.cluster.advance(0)]);
  judge(world, histories);
  for (const { isUp, files } of world.machines) {
    if (!isUp) continue;
    counters.resets += files.status().counters.resets;
    counters.repaired += files.status().counters.repaired;
  }
  counters.rebuilt = counters.wiped;
  const { violation, hash } = world;
  return { seed, plan, where: `${plan.nodes} nodes`, violation, traceHash: hash.digest(), counters };
}

/** At the end each file is read completely, and compared with what the disks have. */
async function readAll(world: FilesWorld, histories: FileHistories): Promise<void> {
  const client = new FilesClient(world, histories, "z");
  const machine = world.machines[0]!;
  let served = 0;
  world.after(lastMs - 1_000, () => {
    if (served < histories.size)
      world.report("progress", `${served} of ${histories.size} files are served in the end`);
  });
  for (const path of histories.keys()) {
    // Retries as programs do: a tenure may need more time to begin than one operation has.
    for (const input of [{ kind: "create" }, { kind: "read", offset: 0, length: 64 }] as const)
      for (let isDone = false; !isDone;) isDone = await client.perform(machine, path, input);
    const nodes = await machine.files.named(path).sync();
    if (nodes < world.plan.nodes)
      world.report("progress", `${nodes} of ${world.plan.nodes} have all of ${path} in the end`);
    served += 1;
  }
  const [first, ...others] = world.machines.map(({ store }) =>
    store
      .healthyBlocks()
      .map(({ path, index, tag }) => `${path}/${index} ${tag}`)
      .sort()
      .join(", "),
  );
  for (const other of others)
    if (other !== first) world.report("agreement", `copies differ in the end: ${first} and ${other}`);
}

function judge(world: FilesWorld, histories: FileHistories): void {
  for (const [path, history] of histories) {
    const { verdict, stuckAt, longest } = judgeFile(history);
    if (verdict === "unknown") world.counters.undecided += 1;
    if (verdict !== "violated") continue;
    const next = stuckAt.map(({ input, output, calledAt }) => JSON.stringify({ calledAt, input, output }));
    const before = longest.slice(-4).map(({ input, output }) => JSON.stringify({ input, output }));
    world.report(
      "linearizability",
      `${path}: after ${before.join(" ")} none of these can be next: ${next.slice(0, 4).join(" ")}`,
    );
  }
}

export const simulateFilesMany = (options: BatchOptions<FilesSimOptions>): Promise<FilesBatch> =>
  simulateSeeds(simulateFiles, filesCounters(), options);
