import type { LineLogger } from "../common/log-options.js";
import { logLevels } from "../../runtime/event-log.js";
import { eventLog } from "../../runtime/log-events.js";
import { rereadFiles } from "../../runtime/security/file-watch.js";
import { appliedSettings, readConfig } from "./apply.js";
import type { ServiceManager } from "../common/systemd.js";
import { failureOf } from "../common/config-faults.js";
import type { SettingOption } from "./setting-option.js";
import { type Resolved, resolveSettings, valueOf } from "./resolve.js";
import { shownTexts } from "./shown.js";
import { type SettingKey, settingOf } from "./table.js";

export interface ReloadOptions {
  // Functions that apply a new value of a setting in this process.
  readonly takes: Readonly<Partial<Record<SettingKey, (value: unknown) => void>>>;
  // Its level is a setting that can be reloaded.
  readonly logger: LineLogger;
  // Notifies systemd of the reload, once the server has started.
  readonly manager?: Pick<ServiceManager, "reloading" | "reloaded"> | undefined;
}

/** Settings that a reload has changed: the value with which the process runs now, and the option. */
const taken = new Map<
  SettingKey,
  { readonly texts: readonly string[] | undefined; readonly option: SettingOption }
>();

/**
 * Reads certificates, keys and the settings file again, and logs the outcome of each change. A file with a
 * fault changes nothing.
 */
export async function reloadSettings(options: ReloadOptions): Promise<void> {
  options.manager?.reloading();
  try {
    await reload(options);
  } finally {
    options.manager?.reloaded();
  }
}

async function reload(options: ReloadOptions): Promise<void> {
  await rereadFiles();
  const events = eventLog(options.logger);
  const applied = appliedSettings();
  if (applied?.path === undefined) return;
  const { command, path, resolved } = applied;
  const file = (await readConfig(path))!;
  const next = resolveSettings(command, process.env, file);
  const [first, ...others] = [...file.faults, ...next.faults];
  if (first !== undefined) {
    const error = failureOf([first, ...others]).message;
    events.log("settings-refused", `the settings stay as they are: ${error}`, { error });
    return;
  }
  const changed = changesOf(resolved, next);
  for (const change of changed) takeChange(change, options);
  if (changed.length === 0)
    events.log("settings-reloaded", `${path} has no change`, { setting: undefined, value: undefined });
}

interface Change {
  readonly key: SettingKey;
  readonly former: readonly string[] | undefined;
  readonly now: readonly string[] | undefined;
  readonly option: SettingOption;
}

function changesOf(former: Resolved, next: Resolved): Change[] {
  const all = new Map([...former.given, ...taken, ...next.given]);
  return [...all].flatMap(([key, { option }]) => {
    const now = next.given.get(key)?.texts;
    const before = (taken.get(key) ?? former.given.get(key))?.texts;
    return String(before) === String(now) ? [] : [{ key, former: before, now, option }];
  });
}

function takeChange({ key, former, now, option }: Change, { takes, logger }: ReloadOptions): void {
  const { initial } = settingOf(key);
  const texts = now ?? (initial === undefined ? [] : [String(initial)]);
  const value = shownTexts(key, now);
  const fields = { setting: key, value };
  const change = `${key} is now ${value}, and was ${shownTexts(key, former)}`;
  const events = eventLog(logger);
  const take = { logLevel: levelOf(logger), ...takes }[key];
  if (take === undefined) {
    events.log("settings-need-restart", `${change}: this needs a restart`, fields);
    return;
  }
  try {
    take(valueOf(option, texts));
    taken.set(key, { texts: now, option });
    events.log("settings-reloaded", change, fields);
  } catch (error) {
    const why = (error as Error).message;
    events.log("settings-refused", `${change}, which was refused: ${why}`, { error: why });
  }
}

function levelOf(logger: LineLogger): (value: unknown) => void {
  return (value) => {
    logger.level = logLevels.find((level) => level === value) ?? logger.level;
  };
}
