import { type Command, type Finish, Option, examples } from "leasehold/cli";

/** `leasehold console` or `leasehold top`. */
export function addCommand(program: Command, finish: Finish, name: string): void {
  if (name === "top") addTop(program, finish);
  else addConsole(program, finish);
}

function addTop(program: Command, finish: Finish): void {
  program
    .command("top")
    .description("watch leases, holders and their ground on the terminal, as top does processes")
    .addHelpText(
      "after",
      examples("leasehold top", "leasehold top --endpoints core://10.0.0.1:2379      of a core"),
    )
    .action(async (_options: unknown, command: Command) => {
      const { showTop } = await import("./top.js");
      finish(await showTop(command.optsWithGlobals()));
    });
}

function addConsole(program: Command, finish: Finish): void {
  program
    .command("console")
    .description("serve a page that shows who holds what, since when, and why a lease cannot be had")
    .addOption(
      new Option("--address <host:port>", "where to serve it")
        .default("127.0.0.1:7450")
        .env("LEASEHOLD_CONSOLE"),
    )
    .option("--host-name <names...>", "other names by which browsers call it, as behind a proxy")
    .option(
      "--password-file <path>",
      "ask browsers for this password; needed unless the address is of this machine only",
    )
    .option("--allow-changes", "let the page release, hand over and break leases")
    .addHelpText(
      "after",
      examples(
        "leasehold console                                      of the local cluster, at http://127.0.0.1:7450/",
        "leasehold console --endpoints core://10.0.0.1:2379",
        "leasehold console --address 0.0.0.0:7450 --password-file console.password",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const { serveConsole } = await import("./serve.js");
      finish(await serveConsole(command.optsWithGlobals()));
    });
}
