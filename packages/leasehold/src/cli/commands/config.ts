import { accessSync, constants, statSync } from "node:fs";
import { type Command, CommanderError } from "../common/commander.js";
import { nearest } from "../../lease/option-names.js";
import { isPem } from "../../runtime/pem.js";
import { exitCode } from "../common/exit-codes.js";
import { describeFailure, usageError } from "../common/failure.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { commandPath, hasUse } from "../common/shared-options.js";
import { printable } from "../output/cells.js";
import { present } from "../output/present.js";
import { toJson } from "../output/json.js";
import { printLine } from "../output/print.js";
import { tableLines } from "../output/table.js";
import { configPathOf, configVariable, readConfig } from "../settings/apply.js";
import { checkOf } from "../settings/checks.js";
import { type ConfigFault, failureOf, faultLine, isWarning } from "../common/config-faults.js";
import { type Given, resolveSettings, takeSettings } from "../settings/resolve.js";
import { schemaOfSettings } from "../settings/schema.js";
import { settingsOfCommand } from "../settings/setting-option.js";
import { readSettings, type SettingsFile } from "../settings/settings-file.js";
import { shownTexts } from "../settings/shown.js";
import { settingKeys, settingOf, variableOf } from "../settings/table.js";

/** Builds the program for a command line; `stop` is called instead of the command's action. */
type Build = (line: readonly string[], stop: (action: Command) => never) => Promise<Command>;

interface Options extends SharedOptions {
  readonly config?: string;
}

/**
 * `leasehold config check [FILE | COMMAND …]`: exit code 0 if there are no faults (warnings are allowed),
 * otherwise 2.
 */
export async function check(words: readonly string[], options: Options, build: Build): Promise<number> {
  const faults = await findFaults(words, options, build);
  const isWrong = faults.some((fault) => !isWarning(fault));
  present(settingsOf(options).output, {
    document: { ok: !isWrong, faults },
    table: (paint) => [
      ...faults.map((fault) => {
        const style = isWarning(fault) ? "yellow" : "red";
        return `${paint(style, fault.code)}  ${printable(faultLine(fault))}`;
      }),
      isWrong ? paint("red", "refused") : paint("green", "ok"),
    ],
  });
  return exitCode(isWrong ? "usage" : "ok");
}

/** The faults and warnings of a file or a command line. */
export async function findFaults(
  words: readonly string[],
  options: Options,
  build: Build,
): Promise<readonly ConfigFault[]> {
  const line = lineAfter("check", words);
  const first = line.find((word) => !word.startsWith("-") && word !== options.config);
  if (first !== undefined && !/[./\\]/.test(first)) return faultsOf(await actionOf(line, build));
  const path = first ?? options.config ?? process.env[configVariable];
  if (path === undefined)
    throw usageError("give a file, or a command: leasehold config check peer --config FILE");
  return fileFaults(readSettings(path));
}

/** `leasehold config show COMMAND …`. */
export async function show(words: readonly string[], options: Options, build: Build): Promise<number> {
  const action = await actionOf(lineAfter("show", words), build);
  const { given, file, faults } = await settingsFor(action);
  // Refused settings are not shown, as they would not be used.
  const [wrong, ...others] = [...(file?.faults ?? []), ...faults];
  if (wrong !== undefined) throw failureOf([wrong, ...others]);
  const rows = settingsOfCommand(action)
    .filter(({ option }) => hasUse(action, option))
    .map(({ option: { key } }) => {
      const found = given.get(key);
      const value = shownTexts(key, found?.texts);
      return { key, value, source: found?.source ?? "default", where: found?.where ?? "default" };
    });
  present(settingsOf(options).output, {
    document: rows,
    table: (paint, widthMax) =>
      tableLines(
        [{ title: "SETTING" }, { title: "VALUE", shrinks: true }, { title: "FROM" }],
        rows.map(({ key, value, source, where }) => {
          const style = source === "default" ? ({ style: "dim" } as const) : {};
          return [{ text: key }, { text: value, ...style }, { text: where, ...style }];
        }),
        paint,
        widthMax,
      ),
  });
  return exitCode("ok");
}

/** `leasehold config schema`. */
export function schema(): number {
  printLine(toJson(schemaOfSettings(), 2));
  return exitCode("ok");
}

/** The line of the other command: this command's line without `config check`. */
function lineAfter(verb: string, words: readonly string[]): readonly string[] {
  const at = words.findIndex((word, index) => word === "config" && words[index + 1] === verb);
  return [...words.slice(0, at), ...words.slice(at + 2)];
}

class Parsed extends Error {
  readonly action: Command;

  constructor(action: Command) {
    super("the command was parsed");
    this.action = action;
  }
}

/** A line's command with its options parsed. Arguments may be missing, because the command does not run. */
async function actionOf(line: readonly string[], build: Build): Promise<Command> {
  const program = await build(line, (action) => {
    throw new Parsed(action);
  });
  loosen(program);
  try {
    await program.parseAsync([...line], { from: "user" });
  } catch (error) {
    if (error instanceof Parsed) return withSettings(error.action);
    if (error instanceof CommanderError && error.code === "commander.help")
      throw usageError("name the whole command, such as files serve");
    throw error;
  }
  throw usageError("name a command, such as peer");
}

function withSettings(action: Command): Command {
  if (settingsOfCommand(action).some(({ option }) => hasUse(action, option))) return action;
  throw usageError(`${commandPath(action)} takes no settings of Leasehold's`);
}

function loosen(command: Command): void {
  for (const argument of command.registeredArguments) argument.required = false;
  for (const option of command.options) option.mandatory = false;
  command.commands.forEach(loosen);
}

async function settingsFor(action: Command) {
  const file = await readConfig(configPathOf(action, process.env));
  return { file, ...resolveSettings(action, process.env, file) };
}

async function faultsOf(action: Command): Promise<readonly ConfigFault[]> {
  const { file, given, faults } = await settingsFor(action);
  const found = [...(file?.faults ?? []), ...faults, ...[...given.values()].flatMap(fileFault)];
  const isReady = !found.some((fault) => !isWarning(fault));
  if (isReady) takeSettings({ given, faults });
  const atStart = isReady ? await startFaults(action) : [];
  return [...found, ...atStart, ...unusedFaults(action, file), ...variableFaults()];
}

function fileFaults({ entries, faults }: SettingsFile): readonly ConfigFault[] {
  const found = [...entries].flatMap(([key, entry]) => fileFault({ key, ...entry }));
  return [...faults, ...found];
}

/** The faults that the command would find at its start. */
async function startFaults(action: Command): Promise<ConfigFault[]> {
  try {
    const options = action.optsWithGlobals<Record<string, unknown>>();
    settingsOf(options);
    await checkOf(action)?.(options);
    return [];
  } catch (error) {
    const { code, message } = describeFailure(error);
    return [{ code, message }];
  }
}

/** Faults of a file that is missing, or whose secret everybody can read. */
function fileFault({ key, texts, where }: Pick<Given, "key" | "texts" | "where">): ConfigFault[] {
  const { kind, holdsSecret } = settingOf(key);
  if (kind.type !== "file") return [];
  return texts.flatMap((path): ConfigFault[] => {
    if (isPem(path)) return [];
    try {
      accessSync(path, constants.R_OK);
      if (holdsSecret !== true || (statSync(path).mode & 0o004) === 0) return [];
      const message = `${key}: every user of this machine can read ${path}; chmod o-r`;
      return [{ code: "CONFIG_EXPOSED", where, message }];
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const why = code === "ENOENT" ? "there is no such file" : String(code);
      return [{ code: "CONFIG_UNREADABLE", where, message: `${key}: ${path} cannot be read: ${why}` }];
    }
  });
}

function unusedFaults(action: Command, file: SettingsFile | undefined): ConfigFault[] {
  const used = new Set(
    settingsOfCommand(action).flatMap(({ option }) => (hasUse(action, option) ? [option.key] : [])),
  );
  return [...(file?.entries ?? [])].flatMap(([key, { where }]) =>
    used.has(key)
      ? []
      : [{ code: "CONFIG_UNUSED", where, message: `${commandPath(action)} has no use for ${key}` }],
  );
}

/** Variables that look like settings; others may belong to another program. */
function variableFaults(): ConfigFault[] {
  const known = [configVariable, ...settingKeys.map(variableOf)];
  return Object.keys(process.env).flatMap((name) => {
    if (!name.startsWith("LEASEHOLD_") || known.includes(name)) return [];
    const prefix = "LEASEHOLD_".length;
    const near = nearest(
      name.slice(prefix),
      known.map((each) => each.slice(prefix)),
    );
    if (near === undefined) return [];
    const message = `no setting has this variable; did you mean LEASEHOLD_${near}?`;
    return [{ code: "CONFIG_VARIABLE", where: name, message }];
  });
}
