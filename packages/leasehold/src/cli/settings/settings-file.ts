import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { nearest } from "../../lease/option-names.js";
import { isPem } from "../../runtime/pem.js";
import type { ConfigCode, ConfigFault } from "../common/config-faults.js";
import { type Placed, readJson } from "./json-text.js";
import { expectation, textsOf, whyNot } from "./kinds.js";
import { type SettingKey, isSettingKey, settingKeys, settingOf } from "./table.js";

/** A setting in a file. */
export interface FileEntry {
  readonly texts: readonly string[];
  /** `path:line`. */
  readonly where: string;
}

export interface SettingsFile {
  readonly entries: ReadonlyMap<SettingKey, FileEntry>;
  readonly faults: readonly ConfigFault[];
}

/** Keys meant for editors and people. */
const notSettings: readonly string[] = ["$schema", "$comment"];

/** Keys of sections: `tls`, `files`. */
const sections = new Set(settingKeys.flatMap((key) => (key.includes(".") ? [key.split(".", 1)[0]!] : [])));

/** The maximum length of a value that a message quotes. */
const shownMax = 60;
const bytesMax = 1024 * 1024;

/** Reads a settings file, and finds all faults that are visible without other sources. */
export function readSettings(path: string): SettingsFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
    if (text.length > bytesMax) throw new Error("the file is too large");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : (code ?? message);
    const fault = { code: "CONFIG_UNREADABLE", where: path, message: `it cannot be read: ${why}` };
    return { entries: new Map(), faults: [fault] };
  }
  return settingsIn(text, path);
}

/** The settings in a file's text. */
export function settingsIn(text: string, path: string): SettingsFile {
  const entries = new Map<SettingKey, FileEntry>();
  const { root, faults } = readJson(text, path);
  if (root === undefined) return { entries, faults };
  if (!(root.value instanceof Map)) {
    const message = "the settings must be one JSON object";
    return { entries, faults: [...faults, { code: "CONFIG_TYPE", where: path, message }] };
  }
  return { entries, faults: [...faults, ...new Entries(path, entries).take(root.value, "")] };
}

class Entries {
  readonly #path: string;
  readonly #entries: Map<SettingKey, FileEntry>;

  constructor(path: string, entries: Map<SettingKey, FileEntry>) {
    this.#path = path;
    this.#entries = entries;
  }

  take(object: ReadonlyMap<string, Placed>, prefix: string): ConfigFault[] {
    return [...object].flatMap(([name, placed]) => {
      if (notSettings.includes(name)) return [];
      const key = prefix + name;
      if (isSettingKey(key)) return this.#setting(key, placed);
      if (!sections.has(key)) return [this.#fault("CONFIG_UNKNOWN", placed, unknownText(key, prefix))];
      if (placed.value instanceof Map) return this.take(placed.value, `${key}.`);
      return [this.#fault("CONFIG_TYPE", placed, `${key} must be an object of settings`)];
    });
  }

  #setting(key: SettingKey, placed: Placed): ConfigFault[] {
    const { kind, isSecret, holdsSecret } = settingOf(key);
    if (isSecret === true)
      return [
        this.#fault("CONFIG_SECRET", placed, `${key} is a secret; name a file that has it: ${key}File`),
      ];
    const texts = textsOf(kind, plain(placed));
    if (texts === undefined) {
      const found = JSON.stringify(plain(placed)).slice(0, shownMax);
      return [this.#fault("CONFIG_TYPE", placed, `${key} must be ${expectation(kind)}, and is ${found}`)];
    }
    const isInline = kind.type === "file" && texts.some(isPem);
    if (isInline && holdsSecret === true)
      return [this.#fault("CONFIG_SECRET", placed, `${key} is a secret; name the file that has it`)];
    const why = texts.map((text) => whyNot(kind, text)).find((each) => each !== undefined);
    if (why !== undefined) return [this.#fault("CONFIG_VALUE", placed, `${key}: ${why}`)];
    const isPath = (kind.type === "file" || kind.type === "path") && !isInline;
    this.#entries.set(key, {
      // A service's working directory differs from that of the person who writes the file.
      texts: isPath ? texts.map((text) => resolve(dirname(this.#path), text)) : texts,
      where: `${this.#path}:${placed.line}`,
    });
    return [];
  }

  #fault(code: ConfigCode, { line }: Placed, message: string): ConfigFault {
    return { code, where: `${this.#path}:${line}`, message };
  }
}

function unknownText(key: string, prefix: string): string {
  const names = [...new Set([...settingKeys, ...sections])];
  // The setting may belong to a section but be outside of it, or the other way round.
  const elsewhere = names.find((name) => name.split(".").at(-1) === key.split(".").at(-1));
  const near =
    elsewhere ?? nearest(key, names) ?? names.find((name) => key.length > 2 && name.startsWith(key));
  const known = prefix === "" ? "" : `; ${prefix.slice(0, -1)} has ${namesIn(prefix).join(", ")}`;
  return `there is no setting "${key.slice(0, shownMax)}"${near === undefined ? known : `; did you mean "${near}"?`}`;
}

function namesIn(prefix: string): readonly string[] {
  return settingKeys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
}

function plain({ value }: Placed): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, each]) => [key, plain(each)]));
  return Array.isArray(value) ? value.map(plain) : value;
}
