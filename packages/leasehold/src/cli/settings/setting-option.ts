import { type Command, InvalidArgumentError, Option } from "../common/commander.js";
import { collectEndpoints } from "../common/settings.js";
import { type Kind, expectation, whyNot } from "./kinds.js";
import { type SettingKey, settingOf } from "./table.js";

/** The option of a setting, which variables and files may also set. */
export class SettingOption extends Option {
  readonly key: SettingKey;

  constructor(key: SettingKey) {
    const { flags, what, initial, kind } = settingOf(key);
    super(flags, typeof initial === "string" ? `${what} (default: ${initial})` : what);
    this.key = key;
    if (typeof initial === "number") this.default(initial);
    if (kind.type === "choice") this.choices(kind.choices);
    const parse = parserOf(kind);
    if (parse !== undefined) this.argParser(parse);
  }
}

/** Creates the option of a setting, to be added to each command that has it. */
export function settingOption(key: SettingKey): Option {
  return new SettingOption(key);
}

/** The settings of a command and its parents, each with the command that has it. */
export function settingsOfCommand(
  command: Command,
): { readonly at: Command; readonly option: SettingOption }[] {
  const own = command.options.filter((option) => option instanceof SettingOption);
  const found = own.map((option) => ({ at: command, option }));
  if (command.parent === null) return found;
  const inherited = settingsOfCommand(command.parent);
  return [...inherited.filter(({ option }) => !own.some(({ key }) => key === option.key)), ...found];
}

/** commander appends this text to its message about the flag and the value. */
function parserOf(kind: Kind): ((text: string, before?: unknown) => unknown) | undefined {
  if (kind.type === "list") return (text, before) => collectEndpoints(text, before as readonly string[]);
  if (kind.type === "addresses")
    return (text, before = []) => [...(before as readonly string[]), ...text.split(",")];
  if (kind.type !== "count" && kind.type !== "fraction") return undefined;
  return (text) => {
    if (whyNot(kind, text) !== undefined) throw new InvalidArgumentError(`It is ${expectation(kind)}.`);
    return Number(text);
  };
}
