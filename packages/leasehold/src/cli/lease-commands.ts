import type { Command } from "commander";
import {
  type Finish,
  attachOption,
  examples,
  exclusiveOption,
  fairOption,
  limitOption,
  sharedOption,
  tryOption,
  ttlOption,
  waitOption,
} from "./command-help.js";
import type { WatchCommandOptions } from "./commands/watch.js";
import type { HoldOptions } from "./commands/hold.js";

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
    .option("--label <text>", "what others read who ask who holds it")
    .option("--data <json>", "what programs read of this tenure, as JSON of at most 1,024 bytes")
    .option("--detach", "take it, print a handle by which one other can go on with it, and end")
    .addOption(attachOption())
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
    .option("--label <text>", "what others read who ask who leads")
    .option("--data <json>", "what programs read of the leader, as JSON of at most 1,024 bytes")
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
    .option("--exact", "the text is one name: tell of no other that begins so")
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
