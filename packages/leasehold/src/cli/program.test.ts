import { readFileSync } from "node:fs";
import { type Command, CommanderError } from "./common/commander.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { LeaseholdError, errorCodes } from "../lease/errors.js";
import { exitCodeLines, exitCodeOfError, exitCodes } from "./common/exit-codes.js";
import { CommandFailure, describeFailure, usageError } from "./common/failure.js";
import { asksForJson } from "./common/shared-options.js";
import { buildProgram, usageFault } from "./program.js";
import { LOCAL_ENDPOINTS, collectEndpoints, settingsOf } from "./common/settings.js";

vi.mock("./commands/list.js", () => ({ list: (...args: unknown[]) => listed(args) }));
vi.mock("./commands/run.js", () => ({ run: (...args: unknown[]) => listed(args) }));

let got: unknown[] = [];
function listed(args: unknown[]): Promise<number> {
  got = args;
  return Promise.resolve(0);
}

afterEach(() => vi.unstubAllEnvs());

async function parse(...words: string[]): Promise<unknown[]> {
  got = [];
  await (await buildProgram(() => undefined)).parseAsync(words, { from: "user" });
  return got;
}

async function fault(...words: string[]): Promise<string | undefined> {
  try {
    await parse(...words);
  } catch (error) {
    return (error instanceof CommanderError ? usageFault(error) : (error as Error))?.message;
  }
  return undefined;
}

/** The help text of each command. */
async function helpTexts(): Promise<Map<string, string>> {
  const { commands } = await buildProgram(() => undefined);
  const texts = commands.map((command) => {
    let printed = "";
    command.configureOutput({ writeOut: (shown) => (printed += shown) });
    command.outputHelp();
    return [command.name(), printed] as const;
  });
  return new Map(texts);
}

describe("options that all commands share", () => {
  test("endpoints are repeated or separated by commas, wherever they stand", async () => {
    const [prefix, options] = await parse(
      "--endpoints",
      "a:1,b:2",
      "ls",
      "x/",
      "--endpoints",
      "flease://c:3",
    );
    expect(prefix).toBe("x/");
    expect(settingsOf(options as object).endpoints).toEqual(["flease://a:1", "flease://b:2", "flease://c:3"]);
  });

  test("an address of several stores is one, and text after it with a scheme is another", () => {
    expect(collectEndpoints("delta+file:///a,/b,/c")).toEqual(["delta+file:///a,/b,/c"]);
    expect(collectEndpoints("delta+redis://h1:6379,h2:6379,h3/0, delta+block:/x,/y,flease://c:3")).toEqual([
      "delta+redis://h1:6379,h2:6379,h3/0",
      "delta+block:/x,/y",
      "flease://c:3",
    ]);
    expect(settingsOf({ endpoints: ["delta+file:///a,/b"] }).endpoints).toEqual(["delta+file:///a,/b"]);
  });

  test("come from the environment by default", async () => {
    vi.stubEnv("LEASEHOLD_ENDPOINTS", "memory:x");
    vi.stubEnv("LEASEHOLD_OUTPUT", "ndjson");
    vi.stubEnv("LEASEHOLD_TIMEOUT", "250ms");
    vi.stubEnv("LEASEHOLD_CLUSTER", "blue");
    const [, options] = await parse("ls", "-o", "json");
    expect(settingsOf(options as object)).toEqual({
      security: {},
      log: {},
      endpoints: ["memory:x"],
      output: "json",
      timeoutMs: 250,
      cluster: "blue",
    });
    const [, replaced] = await parse("ls", "--endpoints", "b:2");
    expect(settingsOf(replaced as object).endpoints).toEqual(["flease://b:2"]);
  });

  test("have defaults", () => {
    expect(settingsOf({})).toEqual({
      endpoints: LOCAL_ENDPOINTS,
      output: "table",
      timeoutMs: 5_000,
      log: {},
      security: {},
    });
    expect(collectEndpoints(" a:1 ,, b:2")).toEqual(["a:1", "b:2"]);
  });
});

describe("run", () => {
  test("takes its own options before and after the name, and ignores those of the command", async () => {
    const [name, words, options] = await parse("run", "--ttl", "4s", "x", "--try", "--", "ls", "-o", "--try");
    expect([name, words]).toEqual(["x", ["ls", "-o", "--try"]]);
    expect(options).toMatchObject({ ttl: "4s", try: true, conflictExitCode: 75, lostExitCode: 76 });
  });

  test("refuses invalid options", async () => {
    expect(await fault("run", "x", "--try", "--wait", "3s", "--", "ls")).toMatch(
      /--try.*cannot be used with.*--wait/,
    );
    expect(await fault("run", "x", "--conflict-exit-code", "256", "--", "ls")).toContain("0 to 255");
    expect(await fault("run", "x", "echo", "-e")).toContain('come after "--"');
    for (const turn of [["--try"], ["--wait", "3s"]])
      expect(await fault("run", "--attach", "h", ...turn, "--", "ls")).toMatch(
        new RegExp(`--attach.*cannot be used with.*${turn[0]}`),
      );
  });
});

describe("faults are one line and have an exit code", () => {
  test.each([
    [["ls", "--nonsense"], "unknown option '--nonsense'"],
    [["nonsense"], "unknown command 'nonsense'"],
    [["ls", "-o", "xml"], "Allowed choices are table, json, ndjson."],
    [["up", "--members", "0"], "from 1 to 31"],
    [["up", "--members", "32"], "from 1 to 31"],
    [["up", "--port", "70000"], "1 to 65535"],
    [["up", "--endpoints", "a:1"], "--endpoints has no meaning for up"],
    [["up", "--key-file", "k"], "--key-file has no meaning for up: its cluster is on this machine only"],
    [["sim", "--timeout", "1s"], "--timeout has no meaning for sim"],
  ])("%j is refused, and the message says why", async (words, message) => {
    expect(await fault(...words)).toContain(message);
  });

  test("--json is -o json, and no other format beside it", async () => {
    vi.stubEnv("LEASEHOLD_OUTPUT", "table");
    for (const words of [
      ["ls", "--json"],
      ["--json", "ls", "-o", "json"],
    ]) {
      const [, options] = await parse(...words);
      expect(settingsOf(options as object).output).toBe("json");
    }
    expect(await fault("ls", "--json", "-o", "ndjson")).toContain("--json and --output ndjson cannot be");
    expect(await fault("core", "--json")).toContain("--json has no meaning for core");
  });

  test("JSON is requested by the last word before -- that decides it, or else by the environment", () => {
    expect(asksForJson(["run", "x", "--", "ls", "--json"])).toBe(false);
    for (const words of [["--json"], ["-o", "json"], ["-ojson"], ["--output=ndjson"], ["--output", "json"]])
      expect(asksForJson(["ls", ...words])).toBe(true);
    expect(asksForJson(["ls", "-o", "json", "-o", "table"])).toBe(false);
    vi.stubEnv("LEASEHOLD_OUTPUT", "json");
    expect(asksForJson(["ls"])).toBe(true);
    expect(asksForJson(["ls", "-o", "table"])).toBe(false);
  });

  test("the help of a command names the shared options that it uses, and no others", async () => {
    const help = await helpTexts();
    const shared = (name: string) => /\nShared options .*:\n([^]*)$/.exec(help.get(name)!)?.[1] ?? "";
    expect(shared("ls")).toMatch(/--endpoints[^]*--timeout[^]*--key-file[^]*--role/);
    expect(shared("sim")).toMatch(/^ +-o, --json\s*$/);
    expect(shared("peer")).toContain("--key-file");
    expect(shared("peer")).not.toMatch(/--endpoints|--timeout|--role/);
    expect(shared("core")).toBe("");
    expect(help.get("core")!.match(/--key-file/g)).toHaveLength(1);
  });

  test("the help of status and the like fits a screen, and help options explains shared options", async () => {
    const help = await helpTexts();
    for (const name of ["status", "ls", "get", "watch", "release", "handover", "break", "doctor"])
      expect(help.get(name)!.split("\n").length).toBeLessThanOrEqual(24);
    const program = await buildProgram(() => undefined);
    for (const { long } of program.options.filter(({ long }) => long !== "--version"))
      expect(help.get("options")).toContain(long);
    expect(help.get("exit-codes")).toContain(exitCodeLines().join("\n"));
  });

  test("errors of the library, expected failures and unexpected ones each have a message and an exit code", () => {
    expect(describeFailure(usageError("bad\n  thing"))).toEqual({
      message: "bad; thing",
      code: "USAGE",
      exitCode: 2,
    });
    expect(describeFailure(new CommandFailure("conflict", "x", "LEASE_HELD", 9))).toEqual({
      message: "x",
      code: "LEASE_HELD",
      exitCode: 9,
    });
    expect(describeFailure(new LeaseholdError("UNREACHABLE", "nobody there"))).toEqual({
      message: "nobody there",
      code: "UNREACHABLE",
      exitCode: 69,
    });
    const noFile = Object.assign(new Error("spawn EMFILE"), { code: "EMFILE" });
    expect(describeFailure(noFile)).toEqual({
      message: expect.stringContaining("EMFILE: too many open files") as string,
      code: "EXHAUSTED",
      exitCode: 71,
    });
    expect(describeFailure(new TypeError("oops"))).toEqual({
      message: "unexpected: TypeError: oops",
      code: "UNEXPECTED",
      exitCode: 1,
    });
  });

  test("every error of the library has an exit code of the table", () => {
    const known = exitCodes.map(({ code }) => code as number);
    for (const code of Object.keys(errorCodes)) {
      expect(known).toContain(exitCodeOfError(code as keyof typeof errorCodes));
    }
  });
});

test("the command's first file knows every command, so that a name like another command's takes the right code", async () => {
  const program = await buildProgram(() => undefined);
  const text = readFileSync(new URL("../../bin/leasehold.js", import.meta.url), "utf8");
  const lists = [...text.matchAll(/const (?:bundled|others) = \[([^\]]*)\]/g)].map(([, list]) => list);
  const known = [...lists.join().matchAll(/"([a-z]+)"/g)].map(([, name]) => name);
  const commands = program.createHelp().visibleCommands(program);
  const names = commands.map((command) => command.name()).filter((name) => name !== "help");
  expect(known.toSorted()).toEqual(names.toSorted());
});

describe("the documentation", () => {
  const read = (page: string) =>
    readFileSync(new URL(`../../../../docs/${page}.md`, import.meta.url), "utf8");
  const text = ["cli", "cli-run", "cli-cluster", "cli-core"].map(read).join("\n");
  /** The table of settings is generated from the options themselves. */
  const settings = read("configuration");

  test("shows the table of exit codes", () => {
    for (const { code, meaning } of exitCodes) expect(text).toContain(`| ${code} | ${meaning} |`);
  });

  /** The parts of the pages below a heading with this command. */
  const partsOn = (command: string) =>
    text
      .split(/^(?=## `leasehold )/m)
      .filter((part) => new RegExp(`^## \`leasehold ${command}\\b`).test(part))
      .join("\n");

  test("names every command, and below it every option of it", async () => {
    const program = await buildProgram(() => undefined);
    // Flags without an effect are in a separate list (`docs/cli-core.md`).
    const missingIn = (part: string, { options }: Pick<Command, "options">) => {
      const places = part.includes("(configuration.md)") ? `${part}${settings}` : part;
      return options
        .filter(({ hidden, flags }) => !hidden && !places.includes(`\`${flags}\``))
        .map(({ flags }) => `${flags} is not in docs/cli*.md below its command`);
    };
    const missing = program
      .createHelp()
      .visibleCommands(program)
      .flatMap((command) => {
        const part = partsOn(command.name());
        if (part === "") return [`docs/cli*.md: no heading \`leasehold ${command.name()}\``];
        return missingIn(part, command).map((what) => `${command.name()} ${what}`);
      });
    expect([...missing, ...missingIn(text, program)]).toEqual([]);
  });

  test("help shows examples for each command", async () => {
    const help = await helpTexts();
    const commands = [...help.keys()].filter((name) => !["options", "exit-codes"].includes(name));
    for (const name of commands)
      expect(help.get(name)).toMatch(new RegExp(`Examples:\\n +leasehold ${name}`));
  });
});
