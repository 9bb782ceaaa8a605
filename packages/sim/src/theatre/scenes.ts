import type { Instance } from "leasehold/inner/flease/protocol/instance.js";
import { fleaseSettings } from "leasehold/inner/flease/protocol/settings.js";
import { allCheckers } from "../flease/checkers/index.js";
import type { InstanceProgram } from "../flease/stage/node.js";
import { drawFairWeather } from "../flease/stage/plan.js";
import type { RunPlan } from "../flease/stage/plan.js";
import type { SimNode } from "../flease/node.js";
import { World } from "../flease/world.js";
import type { ClockMode } from "../kit/clocks.js";
import { EventCode, Task } from "../kit/events.js";
import { SimRandom } from "../kit/random.js";
import { Recorder } from "./recorder.js";
import type { Recording } from "./recording.js";

const resource = "backup";
const ttlMs = 3_000;
const skewMs = 100;

/** Members are ready by then: the story begins. */
const readyMs = ttlMs + 3 * skewMs + 200;

/** A program of a scene. It asks again when it is refused, renews, and releases when the scene says so. */
class Actor implements InstanceProgram {
  readonly resource = resource;
  readonly #world: World;
  readonly #node: SimNode;
  readonly #turn: Task;
  #instance: Instance | undefined;
  #wants = false;
  #isHinted = false;

  constructor(world: World, node: SimNode) {
    this.#world = world;
    this.#node = node;
    this.#turn = new Task(EventCode.agent, () => this.#act());
    node.agents.push(this);
  }

  want(): void {
    this.#wants = true;
    this.#again(0);
  }

  release(): void {
    this.#wants = false;
    this.#again(0);
  }

  begin(): void {
    this.#instance = undefined;
  }

  end(): void {
    this.#wants = false;
    this.#world.cancel(this.#turn);
  }

  #again(delayMs: number): void {
    this.#world.schedule(this.#turn, delayMs);
  }

  #act(): void {
    if (this.#node.peer === undefined || this.#node.deferred(this.#turn)) return;
    this.#node.step(resource, (now) => {
      const { proposer } = this.#node.peer!;
      const instance = this.#instance;
      if (instance === undefined && this.#wants) {
        this.#instance = proposer.acquire(resource, ttlMs, 10 * ttlMs, false, now, true);
        this.#node.assign(this.#instance, this);
      } else if (instance !== undefined && !this.#wants) {
        this.#world.tenures.end(this.#node, resource, "released");
        proposer.release(instance, now);
        this.#instance = undefined;
      } else if (instance !== undefined && proposer.isHeld(instance, now)) {
        proposer.renew(instance, ttlMs, now);
        this.#again(ttlMs / 3);
      }
    });
  }

  acquired(instance: Instance): void {
    this.#instance = instance;
    this.#again(ttlMs / 3);
  }

  refused(retryInMs: number): void {
    this.#instance = undefined;
    // After a release a member may not have heard of it yet.
    this.#again(this.#isHinted ? 150 : retryInMs);
    this.#isHinted = false;
  }

  failed(): void {
    this.#instance = undefined;
    this.#again(400);
  }

  renewed(longer: boolean): void {
    if (!longer) this.#again(ttlMs / 10);
  }

  lapsed(): void {
    this.#world.tenures.end(this.#node, resource, "lapsed");
    this.#wants = false;
    this.#again(1);
  }

  hinted(): boolean {
    if (!this.#wants || this.#instance !== undefined) return false;
    this.#isHinted = true;
    this.#again(1);
    return true;
  }
}

/** Participants of scenes are called A and B. */
function nameIn(members: number, text: string): string {
  return text.replaceAll(/\bc(\d+)\b/g, (_, index: string) => "ABCDE"[Number(index) - members] ?? "?");
}

/** The means of a scene to direct its world. */
class Director {
  readonly a: Actor;
  readonly b: Actor;
  readonly world: World;
  readonly #recorder: Recorder;

  constructor(world: World, recorder: Recorder) {
    this.world = world;
    this.#recorder = recorder;
    const [a, b] = world.nodes.slice(world.members.length);
    this.a = new Actor(world, a!);
    this.b = new Actor(world, b!);
  }

  /** @param afterMs since the members are ready */
  at(afterMs: number, text: string, act: () => void): void {
    this.world.at(readyMs + afterMs, () => {
      if (text !== "") this.#recorder.say(text);
      act();
    });
  }

  /** A member by its name, or the participant A or B. */
  node(name: string): SimNode {
    const { nodes, members } = this.world;
    return nodes.find((each) => nameIn(members.length, each.name) === name)!;
  }

  /** Cuts some nodes off from all others, both ways. */
  cut(names: readonly string[], isCut = true): void {
    const { nodes, network } = this.world;
    const named = names.map((name) => this.node(name));
    const isNamed = (node: SimNode) => named.includes(node);
    for (const one of nodes)
      for (const other of nodes) {
        if (isNamed(one) === isNamed(other)) continue;
        if (isCut) network.cut(one.index, other.index);
        else network.mend(one.index, other.index);
      }
  }

  /** The wall clock of a node is set. */
  setClock(name: string, ms: number): void {
    this.node(name).clock.offsetMs = ms;
  }
}

/** A short run that demonstrates one thing. */
export interface Scene {
  readonly id: string;
  readonly title: string;
  /** A hint about where to look. */
  readonly watch: string;
  /** The conclusion. */
  readonly moral: string;
  readonly mode: ClockMode;
  readonly lastsMs: number;
  readonly spares?: number;
  /** A planted mistake: members answer at once after a restart. */
  readonly withoutWait?: boolean;
  readonly direct: (director: Director) => void;
}

/** A member that guards the lease restarts, while another was never asked. */
function forgetful(director: Director): void {
  const { a, b } = director;
  director.at(0, "The network cuts m2 off.", () => director.cut(["m2"]));
  director.at(20, "", () => a.want());
  director.at(700, "A is cut off with m0. m1 and m2 can talk again.", () => {
    director.cut(["m2"], false);
    director.cut(["A", "m0"]);
  });
  director.at(800, "m1 crashes: it forgets that it guards A's lease.", () => director.node("m1").crash());
  director.at(900, "", () => director.node("m1").start());
  director.at(1_200, "", () => b.want());
}

export const scenes: readonly Scene[] = [
  {
    id: "acquire",
    title: "One acquisition",
    watch: "A and B both want backup. Watch the members' colour: each guards one holder at a time.",
    moral:
      "A holder needs more than half of the members, and two halves always share one. That member says no.",
    mode: "c",
    lastsMs: 5_200,
    direct: (director) => {
      director.at(0, "", () => director.a.want());
      director.at(300, "", () => director.b.want());
      director.at(2_500, "A has finished.", () => director.a.release());
      director.at(4_500, "", () => director.b.release());
    },
  },
  {
    id: "crash",
    title: "A crash, and a take-over",
    watch: "A crashes while it holds backup. B gets it without anybody's help, but not too early.",
    moral:
      "Nobody has to decide that A is dead. Its lease runs out, first at A and only then at the members.",
    mode: "c",
    lastsMs: 6_500,
    direct: (director) => {
      director.at(0, "", () => director.a.want());
      director.at(400, "", () => director.b.want());
      director.at(1_500, "", () => director.node("A").crash());
      director.at(5_800, "", () => director.b.release());
    },
  },
  {
    id: "frozen",
    title: "A frozen holder, and the token",
    watch: "A freezes while it holds backup, as in a long garbage collection. Compare the two tokens.",
    moral:
      "A sees by its clocks that its lease is over. A write it had begun before carries the older token: storage refuses it.",
    mode: "c",
    lastsMs: 7_200,
    direct: (director) => {
      director.at(0, "", () => director.a.want());
      director.at(500, "", () => director.b.want());
      director.at(1_500, "A is frozen: its program stands still, while all clocks go on.", () =>
        director.node("A").pause(4_500),
      );
    },
  },
  {
    id: "clocks",
    title: "A clock beyond the bound",
    watch: "B's clock is 5 s ahead: by it, A's lease is over. The members refuse B all the same.",
    moral: "Members judge by their own clocks. A request from beyond the bound of 100 ms counts for nothing.",
    mode: "b",
    lastsMs: 3_600,
    direct: (director) => {
      director.at(0, "", () => director.a.want());
      director.at(500, "B's clock jumps 5 s ahead.", () => director.setClock("B", 5_000));
      director.at(700, "", () => director.b.want());
      director.at(2_500, "The holder's own clock is set back by 5 s.", () => director.setClock("A", -5_000));
    },
  },
  {
    id: "partition",
    title: "A partition",
    watch: "A is cut off with one member, B with two. Watch whose lease ends first.",
    moral: "A cannot renew on one member of three, and stops in time. Only then do the other two let B in.",
    mode: "c",
    lastsMs: 7_000,
    direct: (director) => {
      director.at(0, "", () => director.a.want());
      director.at(1_200, "The network splits: A and m0 here, all others there.", () =>
        director.cut(["A", "m0"]),
      );
      director.at(1_500, "", () => director.b.want());
      director.at(6_200, "The network is whole again.", () => director.cut(["A", "m0"], false));
    },
  },
  {
    id: "members",
    title: "A change of members",
    watch: "m3 replaces m2 while A holds backup. Between the two lists there is one in which both count.",
    moral:
      "Between old and new, a quorum needs a majority of both lists, so no two quorums ever miss each other.",
    mode: "c",
    lastsMs: 7_000,
    spares: 1,
    direct: (director) => {
      director.at(0, "", () => director.a.want());
      director.at(600, "The operator asks m0 to put m3 in the place of m2.", () => {
        const number = director.node("m0").peer!.views.view.number + 1;
        director.node("m3").peer!.views.invite(number);
        director.node("m0").changeMembers({ members: ["m0", "m1", "m3"], cellSize: 3 });
      });
      director.at(1_200, "", () => director.b.want());
    },
  },
  {
    id: "restart",
    title: "A member that forgets",
    watch: "m1 guards A's lease, and crashes. It keeps nothing on a disk.",
    moral:
      "After a restart m1 is silent until every lease it may have forgotten is over. Compare the planted mistake.",
    mode: "c",
    lastsMs: 6_000,
    direct: forgetful,
  },
  {
    id: "mistake",
    title: "A planted mistake",
    watch: "The same, but m1 answers at once after its restart. It has forgotten A, and agrees to B.",
    moral: "Two holders at one moment: the checker of exclusion stops the run. This is why members wait.",
    mode: "c",
    lastsMs: 4_000,
    withoutWait: true,
    direct: forgetful,
  },
];

function planOf(scene: Scene, random: SimRandom): RunPlan {
  const { mode, lastsMs, spares = 0 } = scene;
  const fair = drawFairWeather(1, random, false);
  const members = Array.from({ length: 3 + spares }, (_, index) => `m${index}`);
  const settings = fleaseSettings({
    members,
    maxClockSkewMs: skewMs,
    ttlMaxMs: ttlMs,
    rpcTimeoutMs: 300,
    clockRateError: 0.01,
  });
  const first = { members: members.slice(0, 3), cellSize: 3 };
  const changing = {
    first,
    stayingCalmMs: 0,
    rivals: false,
    lossRate: 0,
    changeEveryMs: Infinity,
    noteRate: 1,
  };
  return {
    ...fair,
    mode,
    settings: scene.withoutWait === true ? { ...settings, waitWallMs: 0, waitRateMs: 0 } : settings,
    resources: [resource],
    agents: [],
    stormMs: readyMs + lastsMs,
    network: { ...fair.network, meanDelayMs: 25, inOrder: true },
    skewWatch: false,
    wholeMs: false,
    views: spares > 0 ? changing : undefined,
  };
}

/** Runs a scene, and records it. */
export async function recordScene(scene: Scene): Promise<Recording> {
  const random = new SimRandom(7);
  const recorder = new Recorder();
  const plan = planOf(scene, random);
  const world = new World({
    plan,
    random,
    checkers: allCheckers,
    asserted: (invariant) => invariant === "I1",
    watcher: recorder,
  });
  const director = new Director(world, recorder);
  // Clocks that differ, within the bound.
  world.at(0, () => {
    for (const [at, ms] of [20, -30, 10, 35, -15, 40].slice(0, world.nodes.length).entries())
      world.nodes[at]!.clock.offsetMs = ms;
  });
  scene.direct(director);
  await world.run();
  const { steps } = recorder;
  const begin = steps.findIndex(({ atMs }) => atMs >= readyMs);
  const justBefore = steps[begin - 1];
  const first = justBefore !== undefined && readyMs - justBefore.atMs < 500 ? begin - 1 : begin;
  const recording = finished(recorder, world, first);
  const named = (text: string) => nameIn(world.members.length, text);
  const { violation } = recording;
  return {
    ...recording,
    violation: violation && { ...violation, text: named(violation.text) },
    steps: recording.steps.map((step) => ({
      ...step,
      text: named(step.text),
      nodes: step.nodes.map((node) => ({
        ...node,
        name: named(node.name),
        entries: node.entries.map((entry) => ({ ...entry, holder: named(entry.holder) })),
      })),
    })),
  };
}

/** The recording, with the end of the run. */
export function finished(recorder: Recorder, world: World, firstStep: number): Recording {
  const { plan, violation, hash, settings, nowMs } = world;
  const { flights, stepsDropped } = recorder;
  const { invariant = "", text = "", atMs = nowMs } = violation ?? {};
  const last = recorder.steps.at(-1);
  const broken = { ...last!, atMs, text: `${invariant} is broken: ${text}.`, isMain: true };
  return {
    seed: plan.seed,
    mode: plan.mode,
    steps: violation === undefined ? recorder.steps : [...recorder.steps, broken],
    flights,
    resources: plan.resources,
    maxClockSkewMs: settings.maxClockSkewMs,
    traceHash: hash.digest(),
    violation: violation && { invariant, text, atMs },
    firstStep,
    stepsDropped,
  };
}
