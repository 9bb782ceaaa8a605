import { type Command, Help } from "./common/commander.js";
import { exitCodeLines } from "./common/exit-codes.js";
import { LOCAL_ENDPOINTS } from "./common/settings.js";
import { usefulOptions } from "./common/shared-options.js";
import { SettingOption } from "./settings/setting-option.js";
import { variableOf } from "./settings/table.js";

/** As wide as commander's own lines. */
const WIDTH_MAX = 78;

/** Topics of `leasehold help` other than commands. */
const topics = ["options", "exit-codes"];

const isTopic = (command: Command): boolean => topics.includes(command.name());

/** A command's help names the options that it shares with others; `leasehold help options` explains them. */
export function listSharedOptionsOnce(program: Command): void {
  program.configureHelp({
    optionDescription(option) {
      const text = Help.prototype.optionDescription.call(this, option);
      return option instanceof SettingOption ? `${text} (env: ${variableOf(option.key)})` : text;
    },
    // The program's own options are the shared ones.
    visibleOptions(command) {
      const shown = Help.prototype.visibleOptions.call(this, command);
      return command.parent === null
        ? shown.filter(({ long }) => long === "--help" || long === "--version")
        : shown;
    },
    // Listed below the commands.
    visibleCommands(command) {
      return Help.prototype.visibleCommands.call(this, command).filter((each) => each.name() !== "help");
    },
  });
  program.addHelpText("afterAll", ({ command }) => {
    if (command.parent === null || isTopic(command)) return "";
    const flags = usefulOptions(command)
      .map(({ short, long }) => short ?? long ?? "")
      .filter((flag) => flag !== "-V");
    return flags.length === 0 ? "" : `\nShared options (leasehold help options):\n${wrapped(flags)}`;
  });
}

function wrapped(words: readonly string[]): string {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length + 2 <= WIDTH_MAX)
      lines.splice(-1, 1, `${last}, ${word}`);
    else lines.push(`  ${word}`);
  }
  return lines.join(",\n");
}

/** `leasehold help options` and `leasehold help exit-codes`: hidden commands that print their help. */
export function addTopics(program: Command): void {
  const options = program
    .command("options", { hidden: true })
    .description("Options that commands share. They may stand before or after the command's name.")
    .configureHelp({
      visibleOptions: () => program.options.filter(({ long }) => long !== "--version"),
      formatHelp: (command, help) =>
        Help.prototype.formatHelp.call(help, command, help).replace(/^Usage: .*\n\n/, ""),
    })
    .addHelpText("after", `\nWithout --endpoints, the local cluster's: ${LOCAL_ENDPOINTS.join(",")}`);
  options.action(() => options.outputHelp());
  const codes = program
    .command("exit-codes", { hidden: true })
    .description("What the exit codes mean.")
    .configureHelp({ formatHelp: () => `Exit codes:\n${exitCodeLines().join("\n")}\n` });
  codes.action(() => codes.outputHelp());
}
