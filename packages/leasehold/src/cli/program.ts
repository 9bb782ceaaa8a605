import { Command, CommanderError } from "./common/commander.js";
import { type Finish, examples, wholeNumber } from "./command-help.js";
import { letSignalsEnd } from "./common/front.js";
import { type CommandFailure, usageError } from "./common/failure.js";
import { printErrorsAsJson, printLine } from "./output/print.js";
import { applySettings } from "./settings/apply.js";
import { checkedBy } from "./settings/checks.js";
import { settingOption } from "./settings/setting-option.js";
import { commandPath, isJson, refuseUselessOptions, takeJson } from "./common/shared-options.js";
import { addTopics, listSharedOptionsOnce } from "./help-topics.js";
import { addGet, addHolding, addList, addRun, addWatching } from "./lease-commands.js";
import { addCert } from "./cert-commands.js";
import { addMember } from "./member-commands.js";
import { addPackageCommands } from "./package-commands.js";
import { packageVersion } from "../runtime/package-version.js";

const COUNT_MAX = 64;
const PORT_MAX = 65_535;
/** The maximum number of members, each of which is a process on this machine. */
const MEMBERS_MAX = 31;

/** The commands that clean up before a signal ends them. */
const listening: ReadonlySet<string> = new Set([
  "up",
  "run",
  "hold",
  "elect",
  "watch",
  "peer",
  "core",
  "files serve",
  "files up",
  "console",
  "gateway",
  "docs",
]);

const parseCount = wholeNumber(1, COUNT_MAX);
const parseMembers = wholeNumber(1, MEMBERS_MAX);
const parsePort = wholeNumber(1, PORT_MAX);

/** The step between parsing a command and running its action. */
type Prepare = (program: Command, action: Command) => Promise<void> | void;

async function prepareToRun(program: Command, action: Command): Promise<void> {
  refuseUselessOptions(action);
  await applySettings(action);
  takeJson(program);
  if (isJson(program)) printErrorsAsJson();
  if (!listening.has(commandPath(action))) letSignalsEnd();
}

/**
 * Builds the command line. Each command's module is loaded only when that command runs, and for
 * `run NAME … -- COMMAND`, which scripts call often, no other command is added, so that it starts fast.
 *
 * @param words the command line; without it, the commands of all installed packages are loaded
 * @param prepare runs before each action
 */
export async function buildProgram(
  finish: Finish,
  words?: readonly string[],
  prepare: Prepare = prepareToRun,
): Promise<Command> {
  const program = new Command("leasehold")
    .description(
      "Exclusive, time-bounded ownership of a named resource: leases among peers or on shared storage, without a lock server.",
    )
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .showHelpAfterError(false)
    .exitOverride()
    // Makes commander throw its errors, so that they are printed in our form.
    .configureOutput({ writeErr: () => undefined, writeOut: (text) => void printLine(text.trimEnd()) });
  addSharedOptions(program);
  listSharedOptionsOnce(program);
  program.hook("preAction", (_program, action) => prepare(program, action));
  program.commandsGroup("Leases:");
  addRun(program, finish);
  if (words?.[0] === "run" && words.includes("--")) return program;
  addList(program, finish);
  addGet(program, finish);
  addHolding(program, finish);
  addWatching(program, finish);
  program.commandsGroup("Clusters, stores and files:");
  addUp(program, finish);
  addStatus(program, finish);
  addDoctor(program, finish);
  addPeer(program, finish);
  addMember(program, finish);
  addCert(program, finish);
  await addPackageCommands(program, finish, words);
  program.commandsGroup("Other:");
  addConfig(program, finish, words ?? []);
  addCheck(program, finish);
  addHealth(program, finish);
  addSize(program, finish);
  addCompletion(program, finish);
  addTopics(program);
  program.addHelpText(
    "after",
    [
      examples(
        "leasehold up                                   start a local cluster and watch it",
        "leasehold run reports/nightly -- ./report.sh   run a command under a lease",
        "leasehold ls                                   who holds what",
      ),
      "\nleasehold help COMMAND      a command's options, with examples",
      "leasehold help options      options that commands share",
      "leasehold help exit-codes   what exit codes mean",
    ].join("\n"),
  );
  return program;
}

/** In the order in which the help lists them. */
const sharedSettings = ["endpoints", "cluster", "output", "timeout"] as const;
const securitySettings = ["tls.ca", "tls.cert", "tls.key", "keyFile", "role"] as const;

function addSharedOptions(program: Command): void {
  program.option("--config <file>", "settings as JSON; see docs/configuration.md");
  for (const key of sharedSettings) program.addOption(settingOption(key));
  program.option("--json", "as -o json; errors are JSON then, too");
  for (const key of securitySettings) program.addOption(settingOption(key));
}

function addUp(program: Command, finish: Finish): void {
  program
    .command("up")
    .description("start a local cluster with workers that contend for its leases, and show who holds what")
    .option("--members <n>", "member processes", parseMembers, 3)
    .option("--workers <n>", "worker processes", parseCount, 4)
    .option("--resources <n>", "resources that the workers contend for", parseCount, 3)
    .option("--no-kills", "do not kill a holder now and then")
    .option("--port <port>", "first port to listen on; others are used when it is taken", parsePort, 7400)
    .option("--metrics-port <port>", "serve metrics of each process: the first one's port", parsePort)
    .option("--duration <duration>", "stop by itself after this long")
    .addHelpText(
      "after",
      examples(
        "leasehold up",
        "leasehold up --workers 8 --resources 5",
        "leasehold up --no-kills --duration 30s -o ndjson",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const { up } = await import("./up/up.js");
      finish(await up(command.optsWithGlobals()));
    });
}

function addStatus(program: Command, finish: Finish): void {
  program
    .command("status")
    .description("show every member, store or server, its state, and what else it says of itself")
    .addHelpText("after", examples("leasehold status", "leasehold status --endpoints 10.0.0.1:7400 -o json"))
    .action(async (_options: unknown, command: Command) => {
      const { status } = await import("./commands/status.js");
      finish(await status(command.optsWithGlobals()));
    });
}

function addDoctor(program: Command, finish: Finish): void {
  program
    .command("doctor")
    .description("probe and measure stores, members or servers, and say which settings fit them")
    .option("--duration <duration>", "how long to measure stores", "5s")
    .option("--bundle <file>", "write what a report of a fault needs, as .json.gz without secrets")
    .option("--include <file>", "a log or configuration for the bundle; once for each", collected)
    .option("--metrics <host:port>", "a server whose metrics are for the bundle; once for each", collected)
    .addHelpText(
      "after",
      examples(
        "leasehold doctor --endpoints delta+file:///mnt/a,/mnt/b,/mnt/c",
        "leasehold doctor --endpoints delta+redis://h1,h2,h3 --duration 1m -o json",
        "leasehold doctor --endpoints flease://10.0.0.1:7400",
        "leasehold doctor --bundle report.json.gz --include member.log --metrics 10.0.0.1:9090",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const { doctor } = await import("./commands/doctor.js");
      finish(await doctor(command.optsWithGlobals()));
    });
}

const peerSettings = [
  "id",
  "members",
  "listen",
  "ttlMax",
  "maxClockSkew",
  "clockRateError",
  "cellSize",
  "rpcTimeout",
  "resourcesMax",
  "viewsFile",
  "initialClusterState",
  "insecure",
  "metricsAddress",
  "logFormat",
  "logLevel",
] as const;

function addPeer(program: Command, finish: Finish): void {
  const command = program.command("peer").description("run a member of a cluster in this terminal");
  for (const key of peerSettings) command.addOption(settingOption(key));
  checkedBy(command, async (options) => {
    const { checkPeer } = await import("./commands/peer.js");
    await checkPeer(options);
  });
  command
    .addHelpText(
      "after",
      examples(
        "leasehold peer --config /etc/leasehold.json",
        "leasehold peer --id a --member a=127.0.0.1:7400 --member b=127.0.0.1:7401 --member c=127.0.0.1:7402",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const { peer } = await import("./commands/peer.js");
      finish(await peer(command.optsWithGlobals()));
    });
}

function addConfig(program: Command, finish: Finish, words: readonly string[]): void {
  const config = program
    .command("config")
    .description("check settings, show where each comes from, or print their JSON Schema")
    .addHelpText(
      "after",
      examples(
        "leasehold config check /etc/leasehold.json",
        "leasehold config check peer --config /etc/leasehold.json",
        "leasehold config show peer --config /etc/leasehold.json --id b",
        "leasehold config schema > leasehold.schema.json",
      ),
    );
  /** The program for another command's line, which is processed up to the action. */
  const build = (line: readonly string[], stop: (action: Command) => never) =>
    buildProgram(finish, line, (_program, action) => stop(action));
  const about = (name: "check" | "show", what: string, argument: string) =>
    config
      .command(name)
      .description(what)
      .argument(argument, "a command with its options; check: or a file")
      .allowUnknownOption()
      .action(async (_words: string[], _options: unknown, self: Command) => {
        const command = await import("./commands/config.js");
        finish(await command[name](words, self.optsWithGlobals(), build));
      });
  about("check", "check a file, or all settings of a command", "[command...]");
  about("show", "show the settings of a command, and where each value comes from", "<command...>");
  config
    .command("schema")
    .description("print the JSON Schema of the file, by which editors complete it")
    .action(async () => {
      const { schema } = await import("./commands/config.js");
      finish(schema());
    });
}

function addCompletion(program: Command, finish: Finish): void {
  program
    .command("completion")
    .description("print a script that completes commands, options and the names of resources in a shell")
    .argument("<shell>", "bash, zsh or fish")
    .addHelpText(
      "after",
      examples(
        "leasehold completion bash > ~/.local/share/bash-completion/completions/leasehold",
        'leasehold completion zsh > "${fpath[1]}/_leasehold"',
        "leasehold completion fish > ~/.config/fish/completions/leasehold.fish",
      ),
    )
    .action(async (shell: string) => {
      const { completion } = await import("./completion.js");
      finish(completion(program, shell));
    });
}

function addCheck(program: Command, finish: Finish): void {
  program
    .command("check")
    .description("judge the journals of a run: who held what when, and whether two ever held the same")
    .argument("<journal...>", "the journals of one run; see docs/internals/histories.md")
    .addHelpText(
      "after",
      examples("leasehold check run-7/*.journal", "leasehold check run-7/*.journal -o json"),
    )
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const { check } = await import("./commands/check.js");
      finish(await check(paths, command.optsWithGlobals()));
    });
}

function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

function addHealth(program: Command, finish: Finish): void {
  program
    .command("health")
    .description("ask a server on this machine how it is, for health checks of containers")
    .argument("[host:port]", "its --metrics-address", "127.0.0.1:9464")
    .option("--ready", "whether it is ready, instead of whether it is alive")
    .addHelpText("after", examples("leasehold health", "leasehold health --ready 127.0.0.1:9465"))
    .action(async (address: string, _options: unknown, command: Command) => {
      const { health } = await import("./commands/health.js");
      finish(await health(address, command.optsWithGlobals()));
    });
}

function addSize(program: Command, finish: Finish): void {
  program
    .command("size")
    .description("servers, memory, network and disks for a number of leases, from measured figures")
    .requiredOption("--leases <number>", "leases that are held at a time")
    .option("--ttl <duration>", "their ttl", "15s")
    .option("--survive <number>", "servers or stores that may fail", "1")
    .addHelpText("after", examples("leasehold size --leases 1e6 --ttl 10s"))
    .action(async (_options: unknown, command: Command) => {
      const { size } = await import("./commands/size.js");
      finish(size(command.optsWithGlobals()));
    });
}

/** `undefined` for help and version output, which are not faults. */
export function usageFault(error: CommanderError): CommandFailure | undefined {
  if (error.exitCode === 0) return undefined;
  // A group of commands, such as `member`, without one of them.
  if (error.code === "commander.help") return usageError("a command is missing: --help lists them");
  return usageError(error.message.replace(/^error: /, ""));
}
