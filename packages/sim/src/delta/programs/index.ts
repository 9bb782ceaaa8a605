import { ConditionalLease } from "leasehold/inner/delta/conditional/conditional-lease.js";
import { Driver } from "leasehold/inner/delta/driver.js";
import { Farm } from "leasehold/inner/delta/farm/farm.js";
import type { LeaseProtocol, ProtocolEnvironment } from "leasehold/inner/delta/lease-protocol.js";
import { PaperLease } from "leasehold/inner/delta/paper/paper-lease.js";
import { FarmParts } from "leasehold/inner/delta/paper/parts.js";
import { DeltaProvider } from "leasehold/inner/delta/provider/provider.js";
import { least } from "leasehold/inner/common/lists.js";
import { agree, lead, oracleOf } from "./leaders.js";
import { figures, providedLease, readersAndWriters } from "./leases.js";
import { meddle } from "./meddler.js";
import { sharers } from "./sharers.js";
import { isConditional } from "../stage/plan.js";
import { readAndWrite } from "./register.js";
import type { PartsStage, Stage } from "../stage/stage.js";

/** The minimum, so that epochs must be reserved all the time. */
export const epochsAhead = { atomic: 4n, slotted: 4n << 32n };

/**
 * The life of a process: it opens the farm, with the drivers of production, and runs the programs of its
 * ground.
 */
export async function runProcess(stage: Stage): Promise<void> {
  const { plan, party, stores, settings, random } = stage;
  const driver = new Driver(stores, party);
  const traits = stores.map((store) => store.traits);
  const farm = new Farm(traits, settings, epochsAhead);
  stage.leaves(() => driver.close());
  while (!farm.isFounded) {
    await party.alive(driver.run(farm.look()));
    if (!farm.isFounded) await party.sleep(random.next() * plan.delayMs);
  }
  watch(stage, farm);
  const environment: ProtocolEnvironment = { farm, writer: party.writer, random, settings };
  if (isConditional(plan.ground) || plan.ground === "paper") {
    const protocol: LeaseProtocol = isConditional(plan.ground)
      ? new ConditionalLease(environment)
      : new PaperLease(environment);
    const bytesMax = least(traits.map((each) => each.bytesMax));
    const provider = new DeltaProvider({ driver, farm, protocol, settings, holder: party.writer, bytesMax });
    if (plan.ground === "forms" || plan.ground === "counted") return sharers({ ...stage, provider });
    stage.leaves(() => provider.close());
    const provided = { ...stage, provider };
    // Two callers in one process, whose requests go into one slot.
    await Promise.all([providedLease(provided), meddle(provided), meddle(provided)]);
  } else {
    const parts = new FarmParts(driver, farm, environment);
    stage.leaves(() => parts.close());
    await runParts({ ...stage, parts });
  }
}

/** Watches for the loss of the farm, which drivers report when no lease can be acquired. */
function watch(stage: Stage, farm: Farm): void {
  const { party, plan, failed } = stage;
  party.timers.after(plan.delayMs, () => {
    if (!party.isAlive) return;
    if (farm.fault !== undefined) failed(farm.fault);
    watch(stage, farm);
  });
}

async function runParts(stage: PartsStage): Promise<void> {
  const { party } = stage;
  switch (stage.plan.ground) {
    case "always-bounded":
      return figures(stage);
    case "shared":
      return readersAndWriters(stage);
    case "register":
      return readAndWrite(stage);
    case "oracle":
      return lead(stage, oracleOf(stage));
    default: {
      const oracle = oracleOf(stage);
      // Two participants in one process, independent of each other.
      const parts = ["a", "b"].map((part) => agree(stage, oracle, `${party.writer}/${part}`));
      await Promise.all([lead(stage, oracle), ...parts]);
    }
  }
}
