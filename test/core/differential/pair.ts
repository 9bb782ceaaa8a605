import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { CoreCluster } from "../support/core-cluster.js";
import { type Action, type Sequence, shown, shownAction } from "./action.js";
import { Target } from "./target.js";

/** The difference. */
export interface Difference {
  /** Absent: the difference is in notifications, not in an answer. */
  readonly action: Action | undefined;
  readonly ours: JsonValue;
  readonly etcds: JsonValue;
}

/** A smaller sequence must differ in the same way. */
export function kindOf({ action, ours, etcds }: Difference): string {
  return `${action?.service}.${action?.method}: ${typeof ours}, ${typeof etcds}`;
}

export interface Compared {
  readonly difference: Difference | undefined;
  /** Our answers. */
  readonly answers: readonly JsonValue[];
  /** Our notifications. */
  readonly beside: JsonObject;
}

/** The wait until a watch stream has reported the last write. Large values take time. */
const endMsMax = 10_000;

/** Waits for whatever is still to come from either server. */
const restMsMax = 1_000;

async function until(isSo: () => boolean, msMax: number): Promise<void> {
  const endMs = performance.now() + msMax;
  while (!isSo() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 3));
}

/** One of our servers and one etcd. */
export class Pair implements AsyncDisposable {
  readonly #clusters: readonly CoreCluster[];
  readonly #targets: readonly [ours: Target, etcds: Target];
  #rightsAreOn = false;

  private constructor(ours: CoreCluster, etcds: CoreCluster) {
    this.#clusters = [ours, etcds];
    this.#targets = [new Target(ours.servers[0]!), new Target(etcds.servers[0]!)];
  }

  static async start(): Promise<Pair> {
    const [ours, etcds] = await Promise.all([
      CoreCluster.start(1),
      CoreCluster.start(1, { program: "etcd", flags: ["--bcrypt-cost", "4"] }),
    ]);
    for (const { servers } of [ours!, etcds!])
      for (let count = 0; count < revisionsBefore; count += 1) await servers[0]!.client.put("before", "");
    return new Pair(ours!, etcds!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const target of this.#targets) target.close();
    await Promise.all(this.#clusters.map((cluster) => cluster[Symbol.asyncDispose]()));
  }

  /** Runs the sequence on both, starting from an empty state. Ends at the first difference. */
  async compare({ withRights, actions }: Sequence, patience = 1): Promise<Compared> {
    await this.#prepare(withRights, patience);
    const answers: JsonValue[] = [];
    for (const action of actions) {
      const [ours, etcds] = await this.#both((target) => target.perform(action));
      answers.push(ours);
      if (!isDeepStrictEqual(ours, etcds))
        return { difference: { action, ours, etcds }, answers, beside: {} };
    }
    await this.#both((target) => target.end());
    const isSame = () => isDeepStrictEqual(this.#targets[0].beside, this.#targets[1].beside);
    const isAtEnd = () => this.#targets.every((target) => target.isAtEnd);
    await until(isAtEnd, endMsMax * patience);
    await until(isSame, restMsMax * patience);
    const [ours, etcds] = [this.#targets[0].beside, this.#targets[1].beside];
    const difference = isSame() ? undefined : { action: undefined, ours, etcds };
    return { difference, answers, beside: ours };
  }

  async #prepare(withRights: boolean, patience: number): Promise<void> {
    for (const target of this.#targets) target.patience = patience;
    await this.#both(async (target) => {
      if (this.#rightsAreOn && !withRights) await target.switchRightsOff();
      await target.reset();
      if (!this.#rightsAreOn && withRights) await target.switchRightsOn();
    });
    this.#rightsAreOn = withRights;
  }

  async #both<Result>(run: (target: Target) => Promise<Result>): Promise<[ours: Result, etcds: Result]> {
    return Promise.all([run(this.#targets[0]), run(this.#targets[1])]);
  }
}

/** Makes some history that was compacted. */
const revisionsBefore = 5;

/** For humans. */
export function shownDifference({ actions }: Sequence, { action, ours, etcds }: Difference): string {
  const lines = actions.map((each) => `  ${shownAction(each)}`);
  const where = action === undefined ? "beside the answers" : shownAction(action);
  return [...lines, `${where} is told by`, `  ours: ${shown(ours)}`, `  etcd: ${shown(etcds)}`].join("\n");
}
