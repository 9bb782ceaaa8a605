import type { Command } from "leasehold/inner/cli/common/commander.js";
import type { ConfigCode } from "leasehold/inner/cli/common/config-faults.js";
import { commandPath, hasUse } from "leasehold/inner/cli/common/shared-options.js";
import { buildProgram } from "leasehold/inner/cli/program.js";
import { schemaOfSettings } from "leasehold/inner/cli/settings/schema.js";
import { settingsOfCommand } from "leasehold/inner/cli/settings/setting-option.js";
import { settingsIn } from "leasehold/inner/cli/settings/settings-file.js";
import { type SettingKey, settingKeys, settingOf, variableOf } from "leasehold/inner/cli/settings/table.js";
import { describe, expect, test } from "vitest";

/** `npm run generate -- config` writes docs/configuration.md and the JSON Schema anew. */

const head = `# Configuration

<!-- npm run generate -- config -->
[settings.md](settings.md#files-variables-and-flags) says how a file, the environment and flags go together.

`;

/** The meaning of each code; the compiler checks that none is missing. */
const configCodes: Readonly<Record<ConfigCode, string>> = {
  CONFIG_UNREADABLE: "the file cannot be read",
  CONFIG_SYNTAX: "the file is not JSON",
  CONFIG_DUPLICATE: "the file has a key twice",
  CONFIG_UNKNOWN: "there is no such setting",
  CONFIG_TYPE: "the value is of another type",
  CONFIG_VALUE: "the value is not possible",
  CONFIG_SECRET: "the file has a secret; name a file that has it",
  CONFIG_CONFLICT: "two settings exclude each other, or one needs another",
  CONFIG_MISSING: "the command cannot start without this setting",
  CONFIG_UNUSED: "warning: the command does not take this setting",
  CONFIG_EXPOSED: "warning: every user of this machine can read a secret",
  CONFIG_VARIABLE: "warning: no setting has this variable, but one has a similar name",
};

/** True for a command that also has subcommands, which don't take its settings. */
const actsItself = (command: Command): boolean => command.name() === "gateway";

/** The commands that take each setting. Settings that all commands take belong to the program. */
async function takers(): Promise<Map<SettingKey, string[]>> {
  const program = await buildProgram(() => undefined);
  const found = new Map<SettingKey, string[]>();
  const visit = (command: Command): void => {
    command.commands.forEach(visit);
    if (command.commands.length > 0 && !actsItself(command)) return;
    for (const { at, option } of settingsOfCommand(command)) {
      if (!hasUse(command, option) || (at !== command && actsItself(at))) continue;
      const taker = at === program ? "most commands" : commandPath(command);
      const before = found.get(option.key) ?? [];
      if (!before.includes(taker)) found.set(option.key, [...before, taker]);
    }
  };
  visit(program);
  return found;
}

/** Lists the ten commands that are clients of files as one entry. */
function shortened(commands: readonly string[]): string {
  const clients = commands.filter((name) => name.startsWith("files ") && name !== "files serve");
  const others = commands.filter((name) => !clients.includes(name));
  return [...(clients.length > 0 ? ["clients of files"] : []), ...others].join(", ");
}

test("docs/configuration.md matches the table", async () => {
  const commands = await takers();
  const rows = settingKeys.map((key) => {
    const { flags, what, initial, isSecret, reload } = settingOf(key);
    const notes = [isSecret === true && "not in a file", reload === true && "SIGHUP reloads it"].filter(
      Boolean,
    );
    const meaning = [what, ...notes].join("; ");
    const cells = [isSecret === true ? "" : `\`${key}\``, `\`${flags}\``, `\`${variableOf(key)}\``];
    return `| ${[...cells, meaning, initial ?? "", shortened(commands.get(key)!)].join(" | ")} |`;
  });
  const codes = Object.entries(configCodes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  const page = [
    "| key | flag | variable | meaning | default | taken by |",
    "|---|---|---|---|---|---|",
    ...rows,
    "",
    "## Codes",
    "",
    "Of `leasehold config check`, and of a command that refuses its settings (exit code 2).",
    "",
    "| code | meaning |",
    "|---|---|",
    ...codes,
    "",
  ];
  await expect(head + page.join("\n")).toMatchFileSnapshot("../docs/configuration.md");
});

describe("the JSON Schema", () => {
  const schema = schemaOfSettings();
  test("is published unchanged", async () => {
    const text = `${JSON.stringify(schema)}\n`;
    await expect(text).toMatchFileSnapshot("../packages/leasehold/config.schema.json");
  });

  test("allows the same values for each setting as the command", () => {
    const texts = ["", "x", "10s", "1.5h", "10", "h:1", "[::1]:7400", "h", "new", "client", "json", "/a.pem"];
    const others = [
      true,
      0,
      5,
      0.2,
      0.5,
      1.5,
      -1,
      65_536,
      1e13,
      null,
      [],
      {},
      ["x"],
      [1],
      { a: "h:1" },
      { a: 1 },
    ];
    const wrong: string[] = [];
    let [allowed, refused] = [0, 0];
    for (const key of [...settingKeys, "ttlmax", "tls.cart", "tls", "files", "$schema", "$comment"])
      for (const value of [...texts, ...others]) {
        const [first = "", second] = key.split(".");
        const document = { [first]: second === undefined ? value : { [second]: value } };
        const text = JSON.stringify(document);
        const isAllowed = settingsIn(text, "/settings.json").faults.length === 0;
        // Editors decide about comments and the schema's address.
        if (isAllowed !== (key.startsWith("$") || allows(schema, document))) wrong.push(text);
        if (isAllowed) allowed += 1;
        else refused += 1;
      }
    expect(wrong).toEqual([]);
    expect(Math.min(allowed, refused)).toBeGreaterThan(100);
  });
});

type Schema = Readonly<Record<string, unknown>>;

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
};

/** The part of JSON Schema draft 7 that the schema uses. An unknown keyword makes this test fail. */
const keywords: Readonly<Record<string, (rule: unknown, value: unknown, schema: Schema) => boolean>> = {
  $schema: () => true,
  title: () => true,
  description: () => true,
  properties: () => true,
  type: (type, value) => types[String(type)]!(value),
  enum: (choices, value) => (choices as unknown[]).includes(value),
  anyOf: (all, value) => (all as Schema[]).some((each) => allows(each, value)),
  pattern: (pattern, value) => typeof value !== "string" || new RegExp(String(pattern), "u").test(value),
  minLength: (length, value) => typeof value !== "string" || value.length >= Number(length),
  minimum: (least, value) => typeof value !== "number" || value >= Number(least),
  maximum: (most, value) => typeof value !== "number" || value <= Number(most),
  exclusiveMaximum: (bound, value) => typeof value !== "number" || value < Number(bound),
  items: (item, value) => !Array.isArray(value) || value.every((each) => allows(item as Schema, each)),
  additionalProperties: (rest, value, { properties = {} }) => {
    const known = properties as Readonly<Record<string, Schema>>;
    if (!types["object"]!(value)) return true;
    return Object.entries(value as object).every(([name, each]) => {
      if (Object.hasOwn(known, name)) return allows(known[name]!, each);
      return typeof rest === "object" && allows(rest as Schema, each);
    });
  },
};

function allows(schema: Schema, value: unknown): boolean {
  return Object.entries(schema).every(([word, rule]) => keywords[word]!(rule, value, schema));
}
