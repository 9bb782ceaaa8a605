import type { Command } from "../common/commander.js";
import { hasUse } from "../common/shared-options.js";
import type { ConfigFault } from "../common/config-faults.js";
import { type Kind, whyNot } from "./kinds.js";
import { type SettingOption, settingsOfCommand } from "./setting-option.js";
import type { SettingsFile } from "./settings-file.js";
import { type SettingKey, settingOf, variableOf } from "./table.js";

/** The sources of values, the weakest first. */
const sources = ["file", "environment", "flag"] as const;
type Source = (typeof sources)[number];

/** A setting that was given, and its source. */
export interface Given {
  readonly key: SettingKey;
  readonly option: SettingOption;
  /** The command that has the option; the program for shared options. */
  readonly at: Command;
  readonly source: Source;
  /** The flag, the variable, or `path:line`. */
  readonly where: string;
  readonly texts: readonly string[];
}

export interface Resolved {
  readonly given: ReadonlyMap<SettingKey, Given>;
  readonly faults: readonly ConfigFault[];
}

const rankOf = ({ source }: Given) => sources.indexOf(source);

/** The settings of a command. If a setting has several values, the strongest source wins. */
export function resolveSettings(
  command: Command,
  environment: NodeJS.ProcessEnv,
  file: SettingsFile | undefined,
): Resolved {
  const given = new Map<SettingKey, Given>();
  const faults: ConfigFault[] = [];
  for (const { at, option } of settingsOfCommand(command)) {
    if (!hasUse(command, option)) continue;
    const { key } = option;
    const found = givenTo(at, option, environment, file);
    if (found === undefined) continue;
    const why = found.source === "environment" ? whyNotFrom(settingOf(key).kind, found.texts[0]!) : undefined;
    if (why === undefined) given.set(key, found);
    else faults.push({ code: "CONFIG_VALUE", where: found.where, message: why });
  }
  dropReplaced(command, given);
  return { given, faults };
}

function givenTo(
  at: Command,
  option: SettingOption,
  environment: NodeJS.ProcessEnv,
  file: SettingsFile | undefined,
): Given | undefined {
  const { key } = option;
  if (at.getOptionValueSource(option.attributeName()) === "cli") {
    const texts = [at.getOptionValue(option.attributeName()) as unknown].flat().map(String);
    return { key, option, at, source: "flag", where: option.long!, texts };
  }
  const variable = variableOf(key);
  const text = environment[variable];
  // Container tools pass an empty variable to mean none.
  if (text !== undefined && text !== "")
    return { key, option, at, source: "environment", where: variable, texts: [text] };
  const entry = file?.entries.get(key);
  return entry && { key, option, at, source: "file", ...entry };
}

function whyNotFrom(kind: Kind, text: string): string | undefined {
  const parts = kind.type === "addresses" ? text.split(",") : [text];
  const hint = kind.type === "addresses" ? "; write id=host:port,id=host:port" : "";
  const why = parts.map((part) => whyNot(kind, part)).find((each) => each !== undefined);
  return why === undefined ? undefined : why + hint;
}

/** A value also overrides weaker values of the settings that exclude it. */
function dropReplaced(command: Command, given: Map<SettingKey, Given>): void {
  for (const one of given.values())
    for (const key of settingOf(one.key).replaces ?? []) {
      const other = given.get(key as SettingKey);
      if (other !== undefined && rankOf(other) < rankOf(one)) given.delete(other.key);
    }
  const isFlag = (name: string) => command.getOptionValueSource(name) === "cli";
  for (const { key, source } of given.values())
    if (source !== "flag" && settingOf(key).yieldsTo?.some(isFlag) === true) given.delete(key);
}

/** The value as commander would have parsed it. */
export function valueOf(option: SettingOption, texts: readonly string[]): unknown {
  if (settingOf(option.key).kind.type === "flag") return texts[0] === "true";
  const { parseArg } = option;
  if (parseArg === undefined) return texts[0];
  return texts.reduce<unknown>((before, text) => parseArg(text, before), undefined);
}

/** Passes the values that were not given by flags to commander. */
export function takeSettings({ given }: Resolved): void {
  for (const { at, option, source, texts } of given.values())
    if (source !== "flag")
      at.setOptionValueWithSource(
        option.attributeName(),
        valueOf(option, texts),
        source === "file" ? "config" : "env",
      );
}
