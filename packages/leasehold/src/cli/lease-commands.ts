import { type Command, CommanderError } from "./common/commander.js";
import {
  type Finish,
  attachOption,
  examples,
  exclusiveOption,
  fairOption,
  limitOption,
  sharedOption,
  logFormatOption,
  logLevelOption,
  metricsOption,
  tryOption,
  ttlOption,
  waitOption,
} from "./command-help.js";
import { settingOption } from "./settings/setting-option.js";
import type { WatchCommandOptions } from "./commands/watch.js";
import type { HoldOptions } from "./commands/hold.js";

export function addRun(program: Command, finish: Finish): void {
  program
    .command("run")
    .exitOverride((error) => {
      const hint =
        error.code === "commander.unknownOption" ? `; the command and its options come after "--"` : "";
      throw new CommanderError(error.exitCode, error.code, error.message + hint);
    })
    .description(
      "run a command while holding a lease; the command is gone before the lease can pass to another",
    )
    .usage("NAME [options] -- COMMAND [ARGS...] | --attach HANDLE [options] -- COMMAND [ARGS...]")
    .argument("<name>", "the resource")
    .argument("[command...]", "the command and its arguments, after --")
    .addOption(ttlOption())
    .addOption(waitOption())
    .addOption(tryOption())
    .addOption(limitOption())
    .addOption(sharedOption())
    .addOption(exclusiveOption())
    .addOption(fairOption())
    .addOption(attachOption())
    .addOption(settingOption("killAfter"))
    .addOption(settingOption("conflictExitCode"))
    .option("--yield", "end the command with SIGTERM when somebody asks for the lease (leasehold release)")
    .addOption(settingOption("lostExitCode"))
    .addOption(metricsOption())
    .addOption(logFormatOption())
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      [
        "\nThe command finds LEASE_NAME, LEASE_SLOT, LEASE_TOKEN and LEASE_DEADLINE_MS in its environment. Its exit code is passed on.",
        examples(
          "leasehold run reports/nightly -- ./report.sh --all",
          "leasehold run --try backup -- tar czf /backup/home.tgz /home",
          "leasehold run --ttl 10s --wait 5m migrate -- npm run migrate",
        ),
      ].join("\n"),
    )
    .action(async (name: string, words: string[], _options: unknown, command: Command) => {
      const { run } = await import("./commands/run.js");
      finish(await run(name, words, command.optsWithGlobals()));
    });
}

export function addList(program: Command, finish: Finish): void {
  program
    .command("ls")
    .description("list the leases that are held")
    .argument("[prefix]", "only the resources that begin so", "")
    .option("--names", "print the names and nothing else, one a line")
    .addHelpText(
      "after",
      examples("leasehold ls", "leasehold ls reports/", "leasehold ls -o ndjson | jq .holder"),
    )
    .action(async (prefix: string, _options: unknown, command: Command) => {
      const { list } = await import("./commands/list.js");
      finish(await list(prefix, command.optsWithGlobals()));
    });
}

export function addGet(program: Command, finish: Finish): void {
  program
    .command("get")
    .description("show who holds one lease, or why it cannot be had")
    .argument("<name>", "the resource")
    .addHelpText("after", examples("leasehold get reports/nightly", "leasehold get reports/nightly -o json"))
    .action(async (name: string, _options: unknown, command: Command) => {
      const { get } = await import("./commands/get.js");
      finish(await get(name, command.optsWithGlobals()));
    });
}

/** The commands that hold a lease for as long as they run. */
export function addHolding(program: Command, finish: Finish): void {
  program
    .command("hold")
    .description("hold a lease until it is interrupted, or asked to release it")
    .usage("NAME [options] | --attach HANDLE [options]")
    .argument("[name]", "the resource")
    .addOption(ttlOption())
    .addOption(waitOption())
    .addOption(tryOption())
    .addOption(limitOption())
    .addOption(sharedOption())
    .addOption(exclusiveOption())
    .addOption(fairOption())
    .addOption(settingOption("label"))
    .option("--data <json>", "what programs read of this tenure, as JSON of at most 1,024 bytes")
    .option("--detach", "take it, print a handle by which one other can go on with it, and end")
    .addOption(attachOption())
    .addOption(metricsOption())
    .addOption(logFormatOption())
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      examples(
        "leasehold hold deploy/production --label 'by hand, ask Ada'",
        "leasehold hold --try deploy/production -o ndjson",
        `leasehold hold workers/7 --data '{"port":8080}'`,
        "handle=$(leasehold hold deploy/web --detach)",
        'leasehold hold --attach "$handle"',
      ),
    )
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const { hold } = await import("./commands/hold.js");
      finish(await hold(name, command.optsWithGlobals<HoldOptions>()));
    });
  program
    .command("elect")
    .description(
      "campaign for a lease again and again, say when it is led and lost, and run a command meanwhile",
    )
    .usage("NAME [options] [-- COMMAND [ARGS...]]")
    .argument("<name>", "the resource")
    .argument("[command...]", "what to run while leading; when it ends by itself, so does elect")
    .addOption(ttlOption())
    .addOption(settingOption("label"))
    .option("--data <json>", "what programs read of the leader, as JSON of at most 1,024 bytes")
    .addOption(metricsOption())
    .addOption(logFormatOption())
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      examples("leasehold elect scheduler", "leasehold elect scheduler --ttl 5s -- node scheduler.js"),
    )
    .action(async (name: string, words: string[], _options: unknown, command: Command) => {
      const { elect } = await import("./commands/elect.js");
      finish(await elect(name, words, command.optsWithGlobals<HoldOptions>()));
    });
}

/** The commands about the leases of others. */
export function addWatching(program: Command, finish: Finish): void {
  program
    .command("watch")
    .description("show what is held, and each change, until it is interrupted")
    .argument("[prefix]", "only the resources that begin so", "")
    .option("--exact", "the text is one name, not a prefix")
    .addHelpText(
      "after",
      examples(
        "leasehold watch",
        "leasehold watch reports/ -o ndjson | jq -r .resource",
        "leasehold watch --exact scheduler",
      ),
    )
    .action(async (prefix: string, _options: unknown, command: Command) => {
      const { watch } = await import("./commands/watch.js");
      finish(await watch(prefix, command.optsWithGlobals<WatchCommandOptions>()));
    });
  program
    .command("release")
    .description("ask the holder of a lease to give it back; that is the holder's choice")
    .argument("<name>", "the resource")
    .addHelpText("after", examples("leasehold release deploy/production"))
    .action(async (name: string, _options: unknown, command: Command) => {
      const { requestRelease } = await import("./commands/release.js");
      finish(await requestRelease(name, command.optsWithGlobals()));
    });
  program
    .command("handover")
    .description("ask the holder of a lease to give it back to one who waits for it, before all others")
    .argument("<name>", "the resource")
    .argument("<to>", "who is to have it: what it said with --label, its host, or its name as others see it")
    .addHelpText("after", examples("leasehold handover deploy/production host-b"))
    .action(async (name: string, to: string, _options: unknown, command: Command) => {
      const { handOver } = await import("./commands/release.js");
      finish(await handOver(name, to, command.optsWithGlobals()));
    });
  program
    .command("break")
    .description(
      "keep the holder of a lease from renewing it, so that it runs out; it ends no sooner than that",
    )
    .argument("<name>", "the resource")
    .addHelpText("after", examples("leasehold break deploy/production"))
    .action(async (name: string, _options: unknown, command: Command) => {
      const { breakLease } = await import("./commands/release.js");
      finish(await breakLease(name, command.optsWithGlobals()));
    });
}
