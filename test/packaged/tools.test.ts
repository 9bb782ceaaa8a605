import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { install, pack, run, tool } from "./packed.js";

/**
 * Common build and test tools, in a project with the packed file and none of its optional packages. Each runs
 * `project/use.mjs`: leases in memory and on members, grounds whose packages are not installed, and a thread
 * that renews.
 */

/** The outcomes where the thread's file can be found. */
const all = { memory: "held", stores: "held", flease: "held", thread: "held" } as const;
const optional = { redis: "UNSUPPORTED", core: "UNSUPPORTED" } as const;
const everything = { ...all, ...optional };
/** A bundle of one file has no other file to start a thread with. */
const withoutThread = { ...everything, thread: "UNSUPPORTED" };

let folder: string;
let project: string;

beforeAll(async () => {
  const packed = await pack();
  folder = packed.folder;
  project = await install(folder, "project", [packed.tarball]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const node = (...words: string[]) => run(project, process.execPath, words);
const esbuild = (...words: string[]) =>
  run(project, tool(project, "esbuild"), [...words, "--bundle", "--platform=node", "--log-level=warning"]);

/** The program's outcome, from its output alone or within that of a test runner. */
function outcomeIn(output: string): unknown {
  const said = /\{"memory".*\}/.exec(output)?.[0];
  return said === undefined ? output : JSON.parse(said);
}

test("none of the optional packages is installed", () => {
  for (const name of ["pg", "@redis/client", "aws4fetch", "@grpc/grpc-js", "@bufbuild/protobuf"])
    expect(existsSync(join(project, "node_modules", name))).toBe(false);
});

describe.concurrent("without a bundle, everything works", () => {
  test("as a module of Node", async () => {
    expect(outcomeIn(await node("app.mjs"))).toEqual(everything);
  });

  test("required by CommonJS", async () => {
    expect(outcomeIn(await node("required.cjs"))).toEqual(everything);
  });

  test("with tsx", async () => {
    expect(outcomeIn(await run(project, tool(project, "tsx"), ["app.mts"]))).toMatchObject(everything);
  });

  test("compiled by the strictest TypeScript, where options may be `undefined`", async () => {
    await run(project, tool(project, "tsc"), ["-p", "."]);
    await run(project, "cp", ["use.mjs", join("out", "tsc")]);
    expect(outcomeIn(await node(join("out", "tsc", "app.mjs")))).toMatchObject(everything);
    const required = 'require("./out/tsc/app.cjs").take().then(console.log)';
    expect((await node("--eval", required, "--input-type=commonjs")).trim()).toBe("a");
  });

  test("under vitest", async () => {
    const words = ["run", "--dir", "vitest", "--root", "."];
    expect(outcomeIn(await run(project, tool(project, "vitest"), words))).toEqual(everything);
  });

  test("under Jest with Node's modules, from a test in either format", async () => {
    for (const name of ["module.mjs", "script.cjs"]) {
      const modules = { NODE_OPTIONS: "--experimental-vm-modules", NODE_ENV: "test" };
      expect(outcomeIn(await run(project, tool(project, "jest"), [`jest/${name}`], modules))).toEqual(
        everything,
      );
    }
  });
});

describe.concurrent("in a bundle, missing packages break neither the build nor the start", () => {
  test("by esbuild, in one file, as a module and as CommonJS, minified or not", async () => {
    await esbuild("app.mjs", "--format=esm", "--outfile=out/esbuild-esm/app.mjs");
    await esbuild("app.mjs", "--format=cjs", "--outfile=out/esbuild-cjs/app.cjs", "--minify");
    expect(outcomeIn(await node("out/esbuild-esm/app.mjs"))).toEqual(withoutThread);
    expect(outcomeIn(await node("out/esbuild-cjs/app.cjs"))).toEqual(withoutThread);
  });

  test("by esbuild, in chunks, with the file of the thread beside them", async () => {
    const entries = ["app.mjs", "lease-worker=leasehold/lease-worker"];
    await esbuild(...entries, "--format=esm", "--splitting", "--minify", "--outdir=out/esbuild");
    expect(outcomeIn(await node("out/esbuild/app.js"))).toEqual(everything);
  });

  test("by Rollup, in chunks with the file of the thread, and in one file of either format", async () => {
    await run(project, tool(project, "rollup"), ["-c"]);
    expect(outcomeIn(await node("out/rollup/app.js"))).toEqual(everything);
    expect(outcomeIn(await node("out/rollup-single/app.mjs"))).toEqual(withoutThread);
    expect(outcomeIn(await node("out/rollup-cjs/app.cjs"))).toEqual(withoutThread);
  });

  test("by Vite for a server, with the package outside the bundle and inside it", async () => {
    for (const mode of ["external", "bundled"])
      await run(project, tool(project, "vite"), ["build", "--mode", mode]);
    expect(outcomeIn(await node("out/vite/app.js"))).toEqual(everything);
    expect(outcomeIn(await node("out/vite-bundled/app.js"))).toEqual(everything);
  });

  test("by webpack, which finds the file of the thread by itself, in either format", async () => {
    await node("webpack.mjs");
    expect(outcomeIn(await node("out/webpack-esm/app.mjs"))).toEqual(everything);
    expect(outcomeIn(await node("out/webpack-cjs/app.cjs"))).toEqual(everything);
  });
});

describe.concurrent("errors explain what cannot work, and the remedy", () => {
  test("Jest without Node's modules", async () => {
    const output = run(project, tool(project, "jest"), ["jest/module.mjs"], { NODE_ENV: "test" });
    await expect(output).rejects.toThrow(
      /Cannot use import statement|experimental-vm-modules|Must use import/,
    );
  });

  test("leases of a core in a bundle, and a thread without its file", async () => {
    await esbuild("messages.mjs", "--format=esm", "--outfile=out/messages/app.mjs");
    expect((await node("out/messages/app.mjs")).split("\n")).toEqual([
      expect.stringMatching(/openEtcd of "leasehold\/etcd" \(docs\/bundlers\.md\)/),
      expect.stringMatching(/npm install @redis\/client/),
      "",
    ]);
  });

  test("`leasehold/etcd` in a bundle, which then contains the packages that it needs", async () => {
    await expect(esbuild("etcd.mjs", "--format=cjs", "--outfile=out/etcd/app.cjs")).rejects.toThrow(
      /Could not resolve "@(?:bufbuild|grpc)/,
    );
  });
});
