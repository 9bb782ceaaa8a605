import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { buildProgram } from "../program.js";
import { configVariable } from "./apply.js";
import { resolveSettings } from "./resolve.js";
import { SettingOption } from "./setting-option.js";
import { readSettings } from "./settings-file.js";
import { shownTexts } from "./shown.js";
import { settingKeys, settings, settingOf, variableOf } from "./table.js";

vi.mock("../commands/peer.js", () => ({ peer: (options: object) => took(options) }));
vi.mock("../commands/hold.js", () => ({ hold: (_name: string, options: object) => took(options) }));
vi.mock("../commands/list.js", () => ({ list: (_prefix: string, options: object) => took(options) }));

let options: Record<string, unknown> = {};
function took(given: object): Promise<number> {
  options = { ...given };
  return Promise.resolve(0);
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-settings-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

function file(content: object): string {
  const path = join(folder, "settings.json");
  writeFileSync(path, JSON.stringify(content));
  return path;
}

async function run(...words: string[]): Promise<Record<string, unknown>> {
  await (await buildProgram(() => undefined, words)).parseAsync(words, { from: "user" });
  return options;
}

describe("a setting", () => {
  test("of a flag counts before one of the environment, and that before one of the file", async () => {
    vi.stubEnv("LEASEHOLD_TTL_MAX", "2s");
    vi.stubEnv("LEASEHOLD_RPC_TIMEOUT", "200ms");
    const all = { id: "a", ttlMax: "1s", rpcTimeout: 100, maxClockSkew: 10, resourcesMax: 7, insecure: true };
    expect(await run("peer", "--config", file(all), "--rpc-timeout", "300ms")).toMatchObject({
      id: "a",
      ttlMax: "2s",
      rpcTimeout: "300ms",
      maxClockSkew: "10ms",
      resourcesMax: 7,
      insecure: true,
    });
  });

  test("is read from the file that the environment names, its paths from where that file lies", async () => {
    vi.stubEnv(configVariable, file({ tls: { ca: "ca.pem", cert: "/etc/me.pem" }, output: "ndjson" }));
    const { tlsCa, tlsCert, output } = await run("ls");
    expect([tlsCa, tlsCert, output]).toEqual([join(folder, "ca.pem"), "/etc/me.pem", "ndjson"]);
  });

  test("of several values has the same form in a file, a variable and a flag", async () => {
    const members = { a: "10.0.0.1:1", b: "[::1]:2" };
    const expected = ["a=10.0.0.1:1", "b=[::1]:2"];
    expect((await run("peer", "--config", file({ members })))["member"]).toEqual(expected);
    vi.stubEnv("LEASEHOLD_MEMBERS", expected.join(","));
    expect((await run("peer"))["member"]).toEqual(expected);
    expect((await run("peer", "--member", expected[0]!, "--member", expected[1]!))["member"]).toEqual(
      expected,
    );
    const endpoints = ["delta+memory:a,b", "flease://c:3"];
    expect((await run("ls", "--config", file({ endpoints })))["endpoints"]).toEqual(endpoints);
  });

  test("does not count beside a stronger one that excludes it", async () => {
    const path = file({ keyFile: "cluster.key", wait: "3s" });
    const tls = ["--tls-ca", "ca.pem", "--tls-cert", "me.pem", "--tls-key", "me.key"];
    const replaced = await run("hold", "x", "--config", path, ...tls, "--try");
    expect([replaced["keyFile"], replaced["wait"], replaced["tlsCa"]]).toEqual([
      undefined,
      undefined,
      "ca.pem",
    ]);
    vi.stubEnv("LEASEHOLD_TLS_KEY", "other.key");
    const other = file({ tls: { ca: "/ca.pem", cert: "/me.pem", key: "/me.key" } });
    expect(await run("hold", "x", "--config", other)).toMatchObject({
      tlsCa: "/ca.pem",
      tlsKey: "other.key",
    });
  });

  test("that is off in the environment is off, and an empty variable is none", async () => {
    vi.stubEnv("LEASEHOLD_INSECURE", "false");
    vi.stubEnv("LEASEHOLD_ID", "");
    const { insecure, id } = await run("peer", "--config", file({ insecure: true, id: "b" }));
    expect([insecure, id]).toEqual([false, "b"]);
  });

  test("of another command is left alone, and an unknown one refused with its line and a code", async () => {
    await run("ls", "--config", file({ resourcesMax: 3 }));
    await expect(run("ls", "--config", file({ resourceMax: 3 }))).rejects.toMatchObject({
      code: "CONFIG_UNKNOWN",
      exitCode: 2,
      message: expect.stringMatching(/settings\.json:1: .*did you mean "resourcesMax"\?$/) as string,
    });
    await expect(run("up", "--config", "x")).rejects.toThrow("--config has no meaning for up");
  });
});

describe("the table of settings", () => {
  test("has a variable of its own for each, none that Kubernetes sets for a service of this name", () => {
    const variables = settingKeys.map(variableOf);
    expect(new Set(variables).size).toBe(variables.length);
    expect(variables.filter((name) => /^LEASEHOLD_(?:PORT|SERVICE|CONFIG)/.test(name))).toEqual([]);
    expect(variableOf("tls.ca")).toBe("LEASEHOLD_TLS_CA");
    expect(variableOf("files.user")).toBe("LEASEHOLD_FILES_USER");
  });

  test("has each setting at some command, and no command an option of the same name", async () => {
    const program = await buildProgram(() => undefined);
    const commands = [program];
    for (const command of commands) commands.push(...command.commands);
    const options = commands.flatMap((command) => command.options);
    const taken = new Set(options.flatMap((option) => (option instanceof SettingOption ? [option.key] : [])));
    expect(settingKeys.filter((key) => !taken.has(key))).toEqual([]);
    const flags = new Set(settingKeys.map((key) => /--[\w-]+/.exec(settings[key].flags)![0]));
    const others = options.filter(
      (option) => !(option instanceof SettingOption) && flags.has(option.long ?? ""),
    );
    // The core has etcd's flags, `files up` has a folder with the nodes' directories, and `size` takes the
    // ttl it calculates for.
    expect([...new Set(others.map(({ long }) => long))].sort()).toEqual([
      "--dir",
      "--initial-cluster-state",
      "--insecure",
      "--key-file",
      "--log-format",
      "--log-level",
      "--ttl",
    ]);
  });
});

describe("secrets", () => {
  test("are never shown", async () => {
    expect(shownTexts("files.user", ["me:secret"])).toBe("(secret)");
    expect(shownTexts("endpoints", ["delta+redis://me:se:cret@h1:6379,u:secret@h2", "core://h3:2379"])).toBe(
      "delta+redis://me:[removed]@h2,core://h3:2379",
    );
    expect(shownTexts("endpoints", ["delta+s3://b?secretAccessKey=secret&ttlMax=5s"])).toBe(
      "delta+s3://b?secretAccessKey=[removed]&ttlMax=5s",
    );
    expect(shownTexts("endpoints", ["postgres://me:p@ss/word@h/db"])).toBe("postgres://me:[removed]@h/db");
    expect(shownTexts("tls.cert", ["-----BEGIN CERTIFICATE-----"])).toBe("(PEM text)");
    expect(shownTexts("keyFile", undefined)).toBe("-");
  });

  test("are no settings of a file", () => {
    const { entries, faults } = readSettings(file({ files: { user: "me:secret" } }));
    expect([entries.size, faults.map(({ code }) => code)]).toEqual([0, ["CONFIG_SECRET"]]);
    expect(JSON.stringify(faults)).not.toContain("me:secret");
  });
});

test("each value has its place", async () => {
  const words = ["peer", "--id", "a"];
  const program = await buildProgram(() => undefined, words);
  const action = program.commands.find((command) => command.name() === "peer")!;
  action.setOptionValueWithSource("id", "a", "cli");
  const path = file({ ttlMax: "9s" });
  const { given } = resolveSettings(action, { LEASEHOLD_CLUSTER: "one" }, readSettings(path));
  expect([...given.values()].map(({ key, source, where, texts }) => [key, source, where, ...texts])).toEqual([
    ["cluster", "environment", "LEASEHOLD_CLUSTER", "one"],
    ["id", "flag", "--id", "a"],
    ["ttlMax", "file", `${path}:1`, "9s"],
  ]);
  expect(settingOf("ttlMax").initial).toBe("15s");
});
