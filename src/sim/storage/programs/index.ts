import { agree, oracleOf } from "./leaders.js";
import { figures, providedLease, readersAndWriters } from "./leases.js";
import { readAndWrite } from "./register.js";
import type { Stage } from "./stage.js";

/** Starts what a process does on the ground of its run. */
export function startProgram(stage: Stage): void {
  const { process, plan } = stage;
  switch (plan.ground) {
    case "conditional":
    case "paper":
      process.run(providedLease(stage));
      break;
    case "always-bounded":
      process.run(figures(stage));
      break;
    case "shared":
      process.run(readersAndWriters(stage));
      break;
    case "register":
      process.run(readAndWrite(stage));
      break;
    case "oracle":
      process.run(oracleOf(stage).run());
      break;
    case "consensus": {
      const oracle = oracleOf(stage);
      process.run(oracle.run());
      process.run(agree(stage, oracle));
      break;
    }
  }
}
