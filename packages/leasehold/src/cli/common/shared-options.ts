import type { Command, Option } from "./commander.js";
import { usageError } from "./failure.js";

/** The program's options that have no effect on a command, by attribute name, and the reason. */
interface Useless {
  readonly names: readonly string[];
  /** Absent if they are harmless, for example in scripts that pass them to every command. */
  readonly why?: string;
}

const credentials = ["tlsCa", "tlsCert", "tlsKey", "keyFile"] as const;
const aboutAsking = ["endpoints", "timeout", "role"] as const;
/** For commands without their own settings. */
const noFile = [...aboutAsking, ...credentials, "config"] as const;
const all = [...noFile, "cluster", "output", "json"] as const;
const asked = ["endpoints", "role", ...credentials, "cluster"] as const;
/** File nodes authenticate with certificates, and users with a name and password. */
const askedOfFiles = asked.filter((name) => name !== "tlsCa" && name !== "cluster");
const isOutput = (name: string) => name === "output" || name === "json";

const uselessFor: Readonly<Record<string, Useless>> = {
  up: { names: noFile, why: "its cluster is on this machine only" },
  peer: { names: aboutAsking, why: "it is a member itself, and asks no running member" },
  // The server's own --key-file is its private key, as in etcd.
  core: { names: all, why: "it is a server itself, and asks no running member" },
  "core snapshot status": { names: all.filter((name) => !isOutput(name)), why: "it reads a file" },
  sim: { names: all.filter((name) => !isOutput(name)), why: "it asks no running member" },
  check: { names: all.filter((name) => !isOutput(name)), why: "it asks no running member" },
  cert: {
    names: all.filter((name) => !isOutput(name) && name !== "cluster"),
    why: "it asks no running member, and works on files",
  },
  completion: { names: all },
  docs: { names: all, why: "it serves pages only" },
  health: { names: [...asked, "config", "output", "json"], why: "it asks one server's port of health" },
  console: { names: ["output", "json"], why: "it serves a page" },
  gateway: { names: ["output", "json"], why: "it serves programs" },
  "gateway user": { names: all, why: "it asks no running member" },
  top: { names: ["output", "json"], why: "it draws on a terminal" },
  size: { names: all.filter((name) => !isOutput(name)), why: "it asks no running member" },
  files: { names: askedOfFiles, why: "its nodes are named by --nodes" },
  "files serve": { names: ["endpoints", "role", "timeout"], why: "it is a node itself" },
  "files up": { names: [...asked, "timeout", "config"], why: "its nodes are on this machine only" },
};

/** A command as it is typed: `ls`, `files ls`. */
export function commandPath(command: Command): string {
  const parent = command.parent;
  return parent === null || parent.parent === null
    ? command.name()
    : `${commandPath(parent)} ${command.name()}`;
}

function uselessOf(command: Command): Useless | undefined {
  const path = commandPath(command);
  return uselessFor[path] ?? uselessFor[path.split(" ")[0]!];
}

/** The program; all commands share its options. */
export function programOf(command: Command): Command {
  return command.parent === null ? command : programOf(command.parent);
}

/** Whether JSON is requested: by the last relevant word or, without one, by the environment. */
export function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  const own = end === -1 ? words : words.slice(0, end);
  const formats = own.flatMap((word, index) => {
    if (word === "--json") return ["json"];
    if (word === "-o" || word === "--output") return [own[index + 1] ?? ""];
    return /^(?:--output=|-o)(.+)$/.exec(word)?.[1] ?? [];
  });
  return ["json", "ndjson"].includes(formats.at(-1) ?? process.env["LEASEHOLD_OUTPUT"] ?? "");
}

/** Whether the output is JSON, wherever that was requested. */
export function isJson(program: Command): boolean {
  return ["json", "ndjson"].includes(String(program.getOptionValue("output")));
}

/** Sets the output format for `--json`. */
export function takeJson(program: Command): void {
  if (program.getOptionValue("json") !== true) return;
  const output: unknown = program.getOptionValue("output");
  if (program.getOptionValueSource("output") === "cli" && output !== "json")
    throw usageError(`--json and --output ${String(output)} cannot be used together`);
  program.setOptionValueWithSource("output", "json", "cli");
}

/** The program's options that have an effect on this command; its help shows only these. */
export function usefulOptions(command: Command): Option[] {
  return programOf(command).options.filter((option) => hasUse(command, option));
}

/** Whether an option, of the command or the program, has an effect on the command. */
export function hasUse(command: Command, option: Option): boolean {
  if (command.options.includes(option)) return true;
  return uselessOf(command)?.names.includes(option.attributeName()) !== true;
}

/** @throws CommandFailure for an option that has no effect on the command */
export function refuseUselessOptions(command: Command): void {
  const { names = [], why } = uselessOf(command) ?? {};
  if (why === undefined) return;
  const own = new Set(command.options.map((option) => option.attributeName()));
  for (const option of programOf(command).options) {
    const name = option.attributeName();
    if (!names.includes(name) || own.has(name)) continue;
    if (programOf(command).getOptionValueSource(name) === "cli")
      throw usageError(`${option.long} has no meaning for ${commandPath(command)}: ${why}`);
  }
}
