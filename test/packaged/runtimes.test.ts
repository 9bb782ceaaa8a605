import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { add, install, pack, run } from "./packed.js";

/**
 * The packed file, installed by npm, in runtimes other than the current Node. npm has a package of each for
 * each platform.
 */

const arch = process.arch === "arm64" ? "aarch64" : process.arch;
const runtimes = [
  {
    name: "Bun",
    package: `@oven/bun-${process.platform}-${arch}@1.4.5`,
    binary: `@oven/bun-${process.platform}-${arch}/bin/bun`,
    words: [],
  },
  {
    name: "Deno",
    package: `@deno/linux-${process.arch}-glibc@2.9.6`,
    binary: `@deno/linux-${process.arch}-glibc/deno`,
    words: ["run", "--allow-all", "--no-prompt"],
  },
];

let folder: string;
let project: string;

beforeAll(async () => {
  const packed = await pack();
  folder = packed.folder;
  project = await install(folder, "runtimes", [packed.tarball]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The outcomes of the first leases. */
async function firstLeases(name: string, command: string, words: readonly string[]): Promise<unknown> {
  const directories = ["a", "b", "c"].map((each) => join(folder, name, each));
  for (const directory of directories) mkdirSync(directory, { recursive: true });
  const addresses = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
  const program = ["first-leases.mjs", directories.join(","), addresses.join(",")];
  return JSON.parse(await run(project, command, [...words, ...program]));
}

const all = { memory: "passed on", directories: "passed on", members: "passed on" };

describe("leases in memory, on directories and of members over TCP", () => {
  test("by Node", async () => {
    expect(await firstLeases("Node", process.execPath, [])).toEqual(all);
  });

  for (const runtime of runtimes)
    test(`by ${runtime.name}`, async ({ skip }) => {
      const command = join(project, "node_modules", runtime.binary);
      try {
        await add(project, [runtime.package]);
        await run(project, command, ["--version"]);
      } catch (error) {
        process.stderr.write(`${runtime.name} was NOT tried: ${runtime.package}: ${String(error)}\n`);
        skip(`${runtime.package} cannot be had here`);
      }
      expect(await firstLeases(runtime.name, command, runtime.words)).toEqual(all);
    });
});
