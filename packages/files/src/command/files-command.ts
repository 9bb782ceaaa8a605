import {
  Command,
  InvalidArgumentError,
  type Finish,
  checkedBy,
  examples,
  settingOption,
} from "leasehold/cli";
import type { NodesChange } from "../types.js";

/** `leasehold files …`: its commands share the options for finding nodes. */
export function addCommand(program: Command, finish: Finish): void {
  const files = program
    .command("files")
    .description("replicated files: put, get and list them, and run the nodes that keep them")
    .helpCommand(false)
    .addHelpText(
      "after",
      examples(
        "leasehold files up                       three nodes on this machine",
        "leasehold files put backup.tar backups/  (in a second terminal)",
        "leasehold files ls backups",
        "leasehold files get backups/backup.tar copy.tar",
      ),
    );
  addTransfers(files, finish);
  addChanges(files, finish);
  addSnapshots(files, finish);
  addNodes(files, finish);
  addList(files, finish);
}

const clientSettings = ["files.urls", "files.user", "files.userFile"] as const;

function client(command: Command): Command {
  for (const key of clientSettings) command.addOption(settingOption(key));
  return command;
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
      const { put } = await import("./transfer.js");
      finish(await put(file, path, command.optsWithGlobals()));
    });
  client(files.command("get"))
    .description("download a file; the local one is replaced when the download is complete")
    .argument("<path>", "the file there")
    .argument("[file]", "the local path; - is the standard output (default: its name)")
    .addHelpText("after", examples("leasehold files get backups/src.tar", "leasehold files get a.bin b.bin"))
    .action(async (path: string, file: string | undefined, _options: unknown, command: Command) => {
      const { get } = await import("./transfer.js");
      finish(await get(path, file, command.optsWithGlobals()));
    });
  client(files.command("cat"))
    .description("print files")
    .argument("<path...>", "the files")
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const { cat } = await import("./transfer.js");
      finish(await cat(paths, command.optsWithGlobals()));
    });
}

function addChanges(files: Command, finish: Finish): void {
  client(files.command("ls"))
    .description("list a folder")
    .argument("[folder]", "the folder", "")
    .action(async (folder: string, _options: unknown, command: Command) => {
      const { list } = await import("./commands.js");
      finish(await list(folder, command.optsWithGlobals()));
    });
  client(files.command("stat"))
    .description("show size, version and time of a file")
    .argument("<path>", "the file")
    .action(async (path: string, _options: unknown, command: Command) => {
      const { showOne } = await import("./commands.js");
      finish(await showOne(path, command.optsWithGlobals()));
    });
  client(files.command("rm"))
    .description("remove files")
    .argument("<path...>", "the files")
    .option("-r, --recursive", "folders too, with all that is in them")
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const { remove } = await import("./commands.js");
      finish(await remove(paths, command.optsWithGlobals()));
    });
  client(files.command("mv"))
    .description("move a file or a folder with what is in it, in one change")
    .argument("<from>", "the path now")
    .argument("<to>", "the path then; with / at its end, the folder")
    .action(async (from: string, to: string, _options: unknown, command: Command) => {
      const { move } = await import("./commands.js");
      finish(await move(from, to, command.optsWithGlobals()));
    });
  client(files.command("quota"))
    .description("show how much is in a folder, and set how much there may be")
    .argument("<folder>", "the folder")
    .option("--bytes <size>", "the most bytes, such as 10GB; copies count in full", parseBytes)
    .option("--files <count>", "the most files and folders in it", parseCount)
    .option("--none", "remove the quota")
    .addHelpText("after", examples("leasehold files quota backups --bytes 10GB --files 100000"))
    .action(async (folder: string, _options: unknown, command: Command) => {
      const { quota } = await import("./commands.js");
      finish(await quota(folder, command.optsWithGlobals()));
    });
  client(files.command("status"))
    .description("show the state of every node, and the nodes that it sees")
    .action(async (_options: unknown, command: Command) => {
      const { status } = await import("./commands.js");
      finish(await status(command.optsWithGlobals()));
    });
}

function addSnapshots(files: Command, finish: Finish): void {
  const snapshot = files
    .command("snapshot")
    .description("keep a folder as it is now, at FOLDER/.snapshots/NAME")
    .helpCommand(false);
  client(snapshot.command("create"))
    .description("make a snapshot of a folder in one change; the contents are shared")
    .argument("<folder>", "the folder; / is everything")
    .argument("<name>", "the name of the snapshot")
    .action(async (folder: string, name: string, _options: unknown, command: Command) => {
      const { createSnapshot } = await import("./commands.js");
      finish(await createSnapshot(folder, name, command.optsWithGlobals()));
    });
  client(snapshot.command("ls"))
    .description("list the snapshots of a folder")
    .argument("<folder>", "the folder; / is everything")
    .action(async (folder: string, _options: unknown, command: Command) => {
      const { listSnapshots } = await import("./commands.js");
      finish(await listSnapshots(folder, command.optsWithGlobals()));
    });
  client(snapshot.command("remove"))
    .description("remove a snapshot")
    .argument("<folder>", "the folder; / is everything")
    .argument("<name>", "the name of the snapshot")
    .action(async (folder: string, name: string, _options: unknown, command: Command) => {
      const { removeSnapshot } = await import("./commands.js");
      finish(await removeSnapshot(folder, name, command.optsWithGlobals()));
    });
}

function addNodes(files: Command, finish: Finish): void {
  files
    .command("up")
    .description("try three nodes on this machine: kill one, and restart it")
    .option("--dir <path>", "where the nodes keep their files, a folder each", "leasehold-files")
    .option("--port <port>", "first port to listen on; others are used when it is taken", parsePort, 7480)
    .option("--metrics-port <port>", "serve metrics of each node: the first one's port", parsePort)
    .action(async (_options: unknown, command: Command) => {
      const { filesUp } = await import("./up.js");
      finish(await filesUp(command.optsWithGlobals()));
    });
  files
    .command("user")
    .description("print a line for the file of users; the password is the first line of the standard input")
    .argument("<name>", "letters, digits and . _ @ -")
    .argument("<right...>", "r:PATH to read, rw:PATH to write, with everything below; rw:/ is everything")
    .addHelpText(
      "after",
      examples("leasehold files user ann rw:/ann r:/public >> users   (makes a password, and shows it)"),
    )
    .action(async (name: string, rights: string[]) => {
      const { userLine } = await import("./user.js");
      finish(await userLine(name, rights));
    });
  addServe(files, finish);
}

const serveSettings = [
  "id",
  "files.dir",
  "files.nodes",
  "files.join",
  "members",
  "files.http",
  "files.s3",
  "files.httpCert",
  "files.httpKey",
  "files.users",
  "files.blockSize",
  "files.rebalanceRate",
  "metricsAddress",
  "logFormat",
  "logLevel",
  "ttlMax",
  "maxClockSkew",
  "files.user",
  "files.userFile",
] as const;

function addServe(files: Command, finish: Finish): void {
  const command = files
    .command("serve")
    .description("run a node in this terminal, which is also a member of the cluster of its leases");
  for (const key of serveSettings) command.addOption(settingOption(key));
  checkedBy(command, async (options) => {
    const { checkServe } = await import("./serve-settings.js");
    await checkServe(options);
  });
  command.action(async (_options: unknown, self: Command) => {
    const { serve } = await import("./serve.js");
    finish(await serve(self.optsWithGlobals()));
  });
}

function addList(files: Command, finish: Finish): void {
  const node = files
    .command("node")
    .description("list, add, drain and remove nodes while files are used")
    .helpCommand(false);
  const does = (name: string, description: string): Command =>
    client(node.command(name)).description(description);
  const change = (command: Command, changeOf: (id: string, given: GivenNode) => NodesChange): void => {
    command.action(async (id: string, given: GivenNode, self: Command) => {
      const { changeNodes } = await import("./node-list.js");
      finish(await changeNodes(changeOf(id, given), self.optsWithGlobals()));
    });
  };
  does("ls", "show the list of nodes, and how many contents are to be on each").action(
    async (_options: unknown, self: Command) => {
      const { listNodes } = await import("./node-list.js");
      finish(await listNodes(self.optsWithGlobals()));
    },
  );
  change(
    does("add", "add a node, to be started with files serve --join, or change the address or zone of one")
      .argument("<id=host:port>", "its id, and its address for the other nodes")
      .option(
        "--zone <zone>",
        "what may fail with it: copies are in different zones, if there are enough",
        "",
      ),
    (text, { zone = "" }) => ({ what: "add", node: { ...nodeOf(text), zone } }),
  );
  change(
    does("drain", "place the contents of a node on others, and give it no new ones").argument(
      "<id>",
      "the node",
    ),
    (id) => ({ what: "drain", id }),
  );
  change(does("serve", "give a drained node contents again").argument("<id>", "the node"), (id) => ({
    what: "serve",
    id,
  }));
  change(
    does("remove", "remove a node that has no contents any more").argument("<id>", "the node"),
    (id) => ({
      what: "remove",
      id,
    }),
  );
  change(
    does("copies", "on how many nodes each file is that is put")
      .argument("<n>", "the number")
      .option("--folder <path>", "of the files in that folder, also of those that are there"),
    (copies, { folder }) => ({ what: "copies", copies: Number(copies), folder }),
  );
}

interface GivenNode {
  readonly zone?: string;
  readonly folder?: string;
}

function nodeOf(text: string): { readonly id: string; readonly address: string } {
  const at = text.indexOf("=");
  return { id: text.slice(0, Math.max(0, at)), address: text.slice(at + 1) };
}

const units: Readonly<Record<string, number>> = { "": 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

function parseBytes(text: string): number {
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)\s*([kMGT]?B)?$/.exec(text) ?? [];
  const bytes = Math.floor(Number(number) * units[unit]!);
  if (number === "" || !Number.isSafeInteger(bytes))
    throw new InvalidArgumentError("It is a number of bytes, or of kB, MB, GB or TB.");
  return bytes;
}

function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It is a number.");
  return Number(text);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535)
    throw new InvalidArgumentError("It is a number from 1 to 65535.");
  return port;
}
