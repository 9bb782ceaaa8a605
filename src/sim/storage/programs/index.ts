import { agree, oracleOf } from "./leaders.js";
import { figures, providedLease, readersAndWriters } from "./leases.js";
import { readAndWrite } from "./register.js";
import type { Stage } from "./stage.js";

/** Starts what a process does on the ground of its run. */
export function startProgram(stage: Stage): void {
  const { party, plan } = stage;
  switch (plan.ground) {
    case "conditional":
    case "paper":
      party.run(providedLease(stage));
      break;
    case "always-bounded":
      party.run(figures(stage));
      break;
    case "shared":
      party.run(readersAndWriters(stage));
      break;
    case "register":
      party.run(readAndWrite(stage));
      break;
    case "oracle":
      party.run(oracleOf(stage).run());
      break;
    case "consensus": {
      const oracle = oracleOf(stage);
      party.run(oracle.run());
      party.run(agree(stage, oracle));
      break;
    }
  }
}
