import { type Faults, faults } from "../planted/switches.js";

/**
 * Runs another program of this build with some of the protocol's known mistakes in it: `node planted.js PROGRAM …`, with
 * their names in the environment. Only here, in a build of its own, can they be switched on.
 */
const names = (process.env["LEASEHOLD_PLANTED"] ?? "").split(",");
for (const name of names) {
  if (!(name in faults)) throw new Error(`no mistake is called "${name}"`);
  faults[name as keyof Faults] = true;
}
process.argv.splice(1, 1);
await import(process.argv[1]!);
