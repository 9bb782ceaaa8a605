import type { Command } from "./common/commander.js";
import { type Finish, examples } from "./command-help.js";

/** The time limit of a change. */
const within = {
  flags: "--within <duration>",
  text: "how long to wait; a change that has begun goes on after it",
  default: "5m",
};

/** `leasehold member …`: the members of a running cluster. */
export function addMember(program: Command, finish: Finish): void {
  const member = program
    .command("member")
    .description("list, add, remove, replace or restart the members of a running cluster of peers")
    .addHelpText(
      "after",
      examples(
        "leasehold member list",
        "leasehold member add d=10.0.0.4:7400",
        "leasehold member replace c d=10.0.0.4:7400",
        "leasehold member remove a",
        `leasehold member roll --with "ssh {host} systemctl restart leasehold"`,
      ),
    );
  member
    .command("list")
    .description("show the members, and how a change of them stands")
    .action(async (_options: unknown, command: Command) => {
      const { list } = await import("./commands/members/member.js");
      finish(await list(command.optsWithGlobals()));
    });
  member
    .command("add")
    .description("add a member, which is started with --views-file")
    .argument("<id=host:port>", "the member")
    .option(within.flags, within.text, within.default)
    .action(async (added: string, _options: unknown, command: Command) => {
      const { change } = await import("./commands/members/member.js");
      finish(await change({ added }, command.optsWithGlobals()));
    });
  member
    .command("remove")
    .description("remove a member; stop it when that is done, and delete its files")
    .argument("<id>", "the member")
    .option(within.flags, within.text, within.default)
    .action(async (remove: string, _options: unknown, command: Command) => {
      const { change } = await import("./commands/members/member.js");
      finish(await change({ remove }, command.optsWithGlobals()));
    });
  member
    .command("replace")
    .description("put a member in the place of another, which may have died")
    .argument("<id>", "the member that goes")
    .argument("<id=host:port>", "the member that comes")
    .option(within.flags, within.text, within.default)
    .action(async (remove: string, added: string, _options: unknown, command: Command) => {
      const { change } = await import("./commands/members/member.js");
      finish(await change({ added, remove }, command.optsWithGlobals()));
    });
  member
    .command("roll")
    .description("restart one member after another, and wait for each until it is ready")
    .requiredOption("--with <command>", "restarts a member; {id}, {address}, {host} and {port} are put in")
    .option("--from <id>", "go on with this member; those before it, by their ids, are left alone")
    .option("--within <duration>", "how long one member may take until it is ready", "5m")
    .action(async (_options: unknown, command: Command) => {
      const { roll } = await import("./commands/members/roll.js");
      finish(await roll(command.optsWithGlobals()));
    });
}
