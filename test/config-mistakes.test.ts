import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommanderError } from "leasehold/inner/cli/common/commander.js";
import { findFaults } from "leasehold/inner/cli/commands/config.js";
import { type ConfigFault, faultLine } from "leasehold/inner/cli/common/config-faults.js";
import { describeFailure } from "leasehold/inner/cli/common/failure.js";
import { buildProgram, usageFault } from "leasehold/inner/cli/program.js";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";

/**
 * The output of `leasehold config check` for common mistakes; `config-mistakes.txt` is for people to read.
 */

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-config-"));
  mkdirSync(join(folder, "data"));
  const key = randomBytes(32).toString("hex");
  for (const name of ["cluster.key", "open.key", "a.key", "a.pem", "ca.pem", "users"])
    writeFileSync(join(folder, name), key, { mode: 0o600 });
  chmodSync(join(folder, "open.key"), 0o644);
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

const members = `"members": { "a": "10.0.0.1:7400", "b": "10.0.0.2:7400", "c": "10.0.0.3:7400" }`;
const peer = "peer --config member.json";
const member = (...lines: string[]) => `{\n  "id": "a",\n  ${[members, ...lines].join(",\n  ")}\n}\n`;
const secured = (...lines: string[]) => member(`"keyFile": "cluster.key"`, ...lines);

interface Mistake {
  readonly name: string;
  readonly command?: string;
  readonly file?: string;
  readonly environment?: Record<string, string>;
}

const mistakes: readonly Mistake[] = [
  { name: "a key in lower case", file: secured(`"ttlmax": "10s"`) },
  { name: "a setting outside of its section", file: secured(`"blockSize": 4096`) },
  { name: "the name of a flag as the key", file: secured(`"max-clock-skew": "100ms"`) },
  { name: "a comma after the last setting", file: secured(`"ttlMax": "10s",`) },
  { name: "a comment", file: secured(`// as on the other members\n  "ttlMax": "10s"`) },
  { name: "single quotes", file: `{\n  'id': 'a'\n}\n` },
  { name: "a missing end", file: secured().slice(0, -3) },
  { name: "a setting given twice", file: secured(`"ttlMax": "10s"`, `"id": "b"`) },
  { name: "a duration without a unit, as text", file: secured(`"ttlMax": "10"`) },
  { name: "true as text", file: secured(`"insecure": "true"`) },
  { name: "the members as a list", file: `{\n  "id": "a",\n  "members": ["10.0.0.1:7400"]\n}\n` },
  { name: "an address without a port", file: secured(`"listen": "10.0.0.1"`) },
  { name: "an unknown state", file: secured(`"initialClusterState": "join"`) },
  {
    name: "no id, which every member needs",
    file: `{\n  "keyFile": "cluster.key",\n  ${members}\n}\n`,
  },
  { name: "an id that no member has", command: `${peer} --id d`, file: secured() },
  { name: "a missing file", command: "peer --config membr.json" },
  { name: "a missing key file", file: member(`"keyFile": "clster.key"`) },
  { name: "a key file that everybody can read", file: member(`"keyFile": "open.key"`) },
  {
    name: "a password in the file",
    command: "files ls --config member.json",
    file: `{ "files": { "user": "me:secret" } }\n`,
  },
  { name: "a private key in the file", file: member(`"tls": { "key": "-----BEGIN PRIVATE KEY-----" }`) },
  {
    name: "certificates and a cluster key",
    file: secured(`"tls": { "ca": "ca.pem", "cert": "a.pem", "key": "a.key" }`),
  },
  { name: "a certificate without its key", file: member(`"tls": { "ca": "ca.pem", "cert": "a.pem" }`) },
  { name: "no protection against strangers", file: member() },
  { name: "a lease that is too short for the clocks", file: secured(`"ttlMax": "1s"`) },
  { name: "a cell larger than the cluster", file: secured(`"cellSize": 5`) },
  { name: "a setting of another command", file: secured(`"files": { "s3": "10.0.0.1:7481" }`) },
  { name: "a misspelt flag", command: `${peer} --ttlmax 10s`, file: secured() },
  { name: "a misspelt variable", file: secured(), environment: { LEASEHOLD_TTLMAX: "10s" } },
  { name: "a variable with an invalid value", file: secured(), environment: { LEASEHOLD_INSECURE: "yes" } },
  {
    name: "a node of files without its directory",
    command: "files serve --config member.json",
    file: secured(),
  },
  {
    name: "S3 together with a file of users",
    command: "files serve --config member.json",
    file: secured(
      `"files": { "dir": "data", "nodes": { "a": "10.0.0.1:7480" }, "s3": "10.0.0.1:7481", "users": "users" }`,
    ),
  },
];

async function faultsOf(words: readonly string[]): Promise<readonly ConfigFault[]> {
  const finish = (): void => undefined;
  const options = { config: words[words.indexOf("--config") + 1] ?? "" };
  try {
    return await findFaults(["config", "check", ...words], options, (line, stop) =>
      buildProgram(finish, line, (_program, action) => stop(action)),
    );
  } catch (error) {
    const { code, message } = describeFailure(error instanceof CommanderError ? usageFault(error) : error);
    return [{ code, message }];
  }
}

async function sceneOf({ name, command = peer, file, environment = {} }: Mistake): Promise<string> {
  for (const [variable, value] of Object.entries(environment)) vi.stubEnv(variable, value);
  if (file !== undefined) writeFileSync(join(folder, "member.json"), file);
  const words = command.split(" ").map((word) => (word.endsWith(".json") ? join(folder, word) : word));
  const faults = await faultsOf(words);
  vi.unstubAllEnvs();
  expect(faults.map(({ code }) => code)).not.toEqual([]);
  const variables = Object.entries(environment).map(([variable, value]) => `${variable}=${value} `);
  const said = faults.map((fault) => `${fault.code}: ${faultLine(fault)}`.replaceAll(`${folder}/`, ""));
  return [
    `# ${name}`,
    ...(file === undefined ? [] : [file.trimEnd()]),
    `$ ${variables.join("")}leasehold config check ${command}`,
    ...said,
    "",
  ].join("\n");
}

test("each common mistake is reported with its place, the likely intention and a stable code", async () => {
  const scenes: string[] = [];
  for (const mistake of mistakes) scenes.push(await sceneOf(mistake));
  await expect(scenes.join("\n")).toMatchFileSnapshot("config-mistakes.txt");
});

test("a configuration without a mistake passes without output", async () => {
  writeFileSync(join(folder, "member.json"), secured(`"$comment": "as on the other members"`));
  expect(await faultsOf(["peer", "--config", join(folder, "member.json")])).toEqual([]);
});
