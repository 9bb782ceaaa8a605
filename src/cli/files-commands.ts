import { Command, Option } from "commander";
import { type Finish, examples } from "./command-help.js";
import { collectEndpoints } from "./common/settings.js";

/** `leasehold files …`: its commands share how nodes are found. */
export function addFiles(program: Command, finish: Finish): void {
  const files = program
    .command("files")
    .description("replicated files: put, get and list them")
    .helpCommand(false)
    .addHelpText(
      "after",
      examples(
        "leasehold files put backup.tar backups/",
        "leasehold files ls backups",
        "leasehold files get backups/backup.tar copy.tar",
      ),
    );
  addTransfers(files, finish);
  addChanges(files, finish);
}

function client(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--nodes <urls>",
        "nodes to ask, http://host:port, separated by commas (default: those of files up)",
      )
        .argParser(collectEndpoints)
        .env("LEASEHOLD_NODES"),
    )
    .addOption(
      new Option("--user <name:password>", "what the nodes want to be shown").env("LEASEHOLD_FILES_USER"),
    );
}

function addTransfers(files: Command, finish: Finish): void {
  client(files.command("put"))
    .description("write a file of this machine; - is the standard input")
    .argument("<file>", "the file here")
    .argument("[path]", "its path there; with / at its end, the folder (default: its name)")
    .addHelpText(
      "after",
      examples("leasehold files put a.bin", "tar c src | leasehold files put - backups/src.tar"),
    )
    .action(async (file: string, path: string | undefined, _options: unknown, command: Command) => {
      const { put } = await import("./files/transfer.js");
      finish(await put(file, path, command.optsWithGlobals()));
    });
  client(files.command("get"))
    .description("fetch a file; what is here is replaced when all of it has come")
    .argument("<path>", "the file there")
    .argument("[file]", "where to put it here; - is the standard output (default: its name)")
    .addHelpText("after", examples("leasehold files get backups/src.tar", "leasehold files get a.bin b.bin"))
    .action(async (path: string, file: string | undefined, _options: unknown, command: Command) => {
      const { get } = await import("./files/transfer.js");
      finish(await get(path, file, command.optsWithGlobals()));
    });
  client(files.command("cat"))
    .description("print files")
    .argument("<path...>", "the files")
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const { cat } = await import("./files/transfer.js");
      finish(await cat(paths, command.optsWithGlobals()));
    });
}

function addChanges(files: Command, finish: Finish): void {
  client(files.command("ls"))
    .description("list a folder")
    .argument("[folder]", "the folder", "")
    .action(async (folder: string, _options: unknown, command: Command) => {
      const { list } = await import("./files/commands.js");
      finish(await list(folder, command.optsWithGlobals()));
    });
  client(files.command("stat"))
    .description("show what is known of a file")
    .argument("<path>", "the file")
    .action(async (path: string, _options: unknown, command: Command) => {
      const { showOne } = await import("./files/commands.js");
      finish(await showOne(path, command.optsWithGlobals()));
    });
  client(files.command("rm"))
    .description("remove files")
    .argument("<path...>", "the files")
    .option("-r, --recursive", "folders too, with all that is in them")
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const { remove } = await import("./files/commands.js");
      finish(await remove(paths, command.optsWithGlobals()));
    });
  client(files.command("mv"))
    .description("move a file or a folder; files are copied and then removed")
    .argument("<from>", "the path now")
    .argument("<to>", "the path then; with / at its end, the folder")
    .action(async (from: string, to: string, _options: unknown, command: Command) => {
      const { move } = await import("./files/commands.js");
      finish(await move(from, to, command.optsWithGlobals()));
    });
  client(files.command("status"))
    .description("show every node, what it does, and whom it sees")
    .action(async (_options: unknown, command: Command) => {
      const { status } = await import("./files/commands.js");
      finish(await status(command.optsWithGlobals()));
    });
}
