import { Nonces } from "../../../src/delta/paper/site.js";
import { agree, lead, oracleOf } from "./leaders.js";
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
      party.run(lead(stage, oracleOf(stage)));
      break;
    case "consensus": {
      const oracle = oracleOf(stage);
      const nonces = new Nonces();
      party.run(lead(stage, oracle));
      // Two of one process: they know nothing of each other.
      for (const part of ["a", "b"]) party.run(agree(stage, oracle, `${party.writer}/${part}`, nonces));
      break;
    }
  }
}
