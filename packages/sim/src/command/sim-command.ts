import { type Command, InvalidArgumentError, Option, type Finish, examples } from "leasehold/cli";

/** `leasehold sim`. */
export function addCommand(program: Command, finish: Finish): void {
  program
    .command("sim")
    .description(
      "run random bad days of a simulated cluster, and check the protocol's invariants all the time",
    )
    .option("--seed <seed>", "first seed; alone: run this one again")
    .option("--minutes <n>", "begin new runs for so long (default: 1)", parsePositive)
    .option("--runs <n>", "so many runs", parsePositive)
    .addOption(
      new Option("--mode <mode>", "which clocks are wild; see docs/internals/safety-simulation.md").choices([
        ..."abcdefg",
      ]),
    )
    .option("--without <features>", "take features out of the run, separated by commas")
    .option("--story", "with --seed: print what happens, line by line")
    .option("--theatre [address]", "serve a page that plays the run of --seed, or chosen scenes")
    .addOption(
      new Option(
        "--ground <ground>",
        "what is simulated: a cluster, leases on shared storage, a consistent core, or replicated files",
      ).choices(["flease", "delta", "grid", "core", "files", "names"]),
    )
    .addHelpText(
      "after",
      examples(
        "leasehold sim --minutes 10",
        "leasehold sim --seed 7 --mode e --story",
        "leasehold sim --seed 7 --theatre              at http://127.0.0.1:7460/",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const { sim } = await import("./sim.js");
      finish(await sim(command.optsWithGlobals()));
    });
}

function parsePositive(text: string): number {
  const number = Number(text);
  if (!/^\d+(?:\.\d+)?$/.test(text) || number <= 0) throw new InvalidArgumentError("It is a number above 0.");
  return number;
}
