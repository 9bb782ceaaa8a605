import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/built.js";
import { run } from "./packed.js";

/**
 * A new user starts from nothing: clones the committed state, follows the README, packs the package, installs
 * it in a project, and runs the common uses of leases there. The programs are those of `docs/recipes.md` and
 * `examples/`.
 */

const root = fileURLToPath(new URL("../..", import.meta.url));
const quiet = ["--no-audit", "--no-fund", "--prefer-offline"];

interface Running {
  readonly process: ChildProcess;
  readonly closed: Promise<number | null>;
  output(): string;
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-first-hour-")));
const clone = join(folder, "clone");
const project = join(folder, "project");
const started: ChildProcess[] = [];
/** The addresses of the running cluster. Programs and commands read them from the environment. */
let cluster: { LEASEHOLD_MEMBER: string; LEASEHOLD_ENDPOINTS: string };
let recipes: string;

function start(at: string, command: string, words: readonly string[], more = {}): Running {
  const env = { ...process.env, NODE_ENV: "", NO_COLOR: "1", ...cluster, ...more };
  const child = spawn(command, words, { cwd: at, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const closed = once(child, "close").then(([code]) => code as number | null);
  return { process: child, closed, output: () => output };
}

const node = (words: string[], env = {}) => start(project, process.execPath, words, env);
const example = (name: string, words: string[] = [], env = {}) =>
  node([join("examples", name), ...words], env);
const leasehold = (...words: string[]) =>
  start(project, join(project, "node_modules", ".bin", "leasehold"), words);

/** Waits until the output matches. */
const printed = (running: Running, pattern: RegExp): Promise<RegExpExecArray> =>
  eventually(`${pattern} in ${running.output()}`, () => pattern.exec(running.output()) ?? undefined, 30_000);

/** Waits for a successful exit, and returns the output. */
async function outputOf(running: Running): Promise<string> {
  expect({ code: await running.closed, output: running.output() }).toMatchObject({ code: 0 });
  return running.output();
}

/** Sends the signal to all processes of the group, as Ctrl-C does. */
async function interrupt(running: Running): Promise<void> {
  process.kill(-running.process.pid!, "SIGINT");
  await running.closed;
}

/** Waits for a local cluster of `up` with its workers. The programs started next use it. */
async function clusterOf(running: Running): Promise<Running> {
  const [, address] = await printed(running, /local cluster: a (127\.0\.0\.1:\d+)/);
  cluster = { LEASEHOLD_MEMBER: `flease://${address}`, LEASEHOLD_ENDPOINTS: `flease://${address}` };
  return running;
}

/** The code blocks of a recipe, in the page's order. */
function codeOf(heading: string): string[] {
  const section = recipes.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  return [...section!.matchAll(/^```(?:ts|js)\n([^]*?)^```$/gm)].map(([, code]) => code!);
}

/** Runs a recipe between the page's common beginning and end. */
function recipe(heading: string, replaced: Record<string, string> = {}): Running {
  const [, begin, end] = /```ts\n([^]*?)```\n\n```ts\n([^]*?)```/.exec(recipes)!;
  const whole = begin! + codeOf(heading)[0] + end!;
  const code = Object.entries({ "flease://127.0.0.1:7400": cluster.LEASEHOLD_MEMBER, ...replaced }).reduce(
    (text, [from, to]) => text.replace(from, to),
    whole,
  );
  const name = `${heading.toLowerCase().replaceAll(/\W+/g, "-")}.mjs`;
  writeFileSync(join(project, name), code);
  return node([name]);
}

/** A lease that a command holds until the command is killed. */
async function held(name: string): Promise<Running> {
  const holding = leasehold("hold", name, "-o", "ndjson");
  await printed(holding, /"held"/);
  return holding;
}

afterAll(() => {
  for (const { pid, exitCode, signalCode } of started)
    if (exitCode === null && signalCode === null) process.kill(-pid!, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test("a clone and the commands of the README: a cluster, a command under a lease, a program, a packed file", async () => {
  const words = (line: RegExp) => line.exec(readFileSync(join(clone, "README.md"), "utf8"))![1]!;
  await run(folder, "git", ["clone", "--quiet", root, clone]);
  expect(words(/^(npm ci && npm start)\b/m)).toBeDefined();
  await run(clone, "npm", ["ci", ...quiet], { NODE_ENV: "" });
  const demo = await clusterOf(start(clone, "npm", ["start"]));
  const command = words(/^npx (leasehold run .*) -- echo "only one of us at a time"$/m).split(" ");
  expect(await outputOf(start(clone, "npx", [...command, "--", "echo", "only one of us at a time"]))).toMatch(
    /^only one of us at a time$/m,
  );
  const program = words(/^node (examples\/first-lease\.mjs)$/m);
  expect(await outputOf(start(clone, process.execPath, [program]))).toMatch(/is ours, token \d+/);
  await interrupt(demo);
  await run(clone, "npm", ["pack", "--workspace", "leasehold"], { NODE_ENV: "" });
});

describe("in a user's project, with the packed file and a cluster of `leasehold up`", () => {
  beforeAll(async () => {
    mkdirSync(project);
    await run(project, "npm", ["init", "--yes"]);
    await run(project, "npm", ["pkg", "set", "type=module"]);
    await run(project, "npm", ["install", ...quiet, join(clone, "leasehold-0.1.0.tgz")]);
    recipes = readFileSync(join(clone, "docs", "recipes.md"), "utf8");
    cpSync(join(clone, "examples"), join(project, "examples"), { recursive: true });
    const up = await clusterOf(leasehold("up", "--no-kills"));
    // Wait for all members: on a busy machine the recovery wait is longer than the window of the first
    // recipe.
    await printed(up, /(?:member \w is ready[^]*){3}/);
  });

  test("cron: of three that start at the same time, one does the job", async () => {
    const due = new Date().toISOString();
    const env = { WINDOW_MS: "5000", SKEW_MS: "100" };
    const jobs = [1, 2, 3].map(() => outputOf(example("once-per-period.mjs", [due], env)));
    const outputs = await Promise.all(jobs);
    expect(outputs.filter((output) => /^begins with token \d+\ndone\n$/.test(output))).toHaveLength(1);
    expect(outputs.filter((output) => output === "another has done it\n")).toHaveLength(2);
  });

  test("cron, recorded: a day is done once", async () => {
    const mounted = join(folder, "mounted");
    mkdirSync(mounted);
    const once = () => outputOf(recipe("Once per period, recorded", { "/mnt/a": mounted }));
    expect(await once()).toMatch(/^works for \d{4}-\d\d-\d\d, token \d+\n$/);
    expect(await once()).toBe("");
  });

  test("leader: another leads when the first is asked to stop", async () => {
    const first = example("leader.mjs");
    await printed(first, /leads with token/);
    const second = example("leader.mjs");
    await printed(second, /standing by/);
    first.process.kill("SIGTERM");
    expect(await outputOf(first)).toContain("handed over");
    await printed(second, /leads with token/);
    second.process.kill("SIGTERM");
    await outputOf(second);
  });

  test("lock with a timeout: acquires the lease, or reports that it timed out", async () => {
    expect(await outputOf(recipe("Lock with a time-out"))).toMatch(/^prints, token \d+\n$/);
    const holding = await held("printer");
    expect(await outputOf(recipe("Lock with a time-out"))).toBe("busy, try again later\n");
    await interrupt(holding);
  });

  test("try lock: acquires the lease, or reports that another holds it", async () => {
    expect(await outputOf(recipe("Try lock"))).toMatch(/^ours, token \d+\n$/);
    const holding = await held("thumbnails/cat.png");
    expect(await outputOf(recipe("Try lock"))).toBe("another makes it\n");
    await interrupt(holding);
  });

  test("many locks: a hundred in one program", async () => {
    expect(await outputOf(recipe("Many locks"))).toBe("100 accounts done\n");
  });

  test("several in order: of four programs that want the same two, none waits for ever", async () => {
    const programs = [1, 2, 3, 4].map(() => outputOf(recipe("Several in order")));
    expect(new Set(await Promise.all(programs))).toEqual(new Set(["moves from accounts/12 to accounts/7\n"]));
  });

  test("HTTP handler: replies with the token as text", async () => {
    const server = example("http-handler.mjs", [], { PORT: "0" });
    const [url] = await printed(server, /http:\S+/);
    const reply = await fetch(`${url}/accounts/7`, { method: "POST" });
    const token = reply.headers.get("x-fencing-token");
    expect(token).toMatch(/^\d+$/);
    expect(await reply.json()).toMatchObject({ lease: { resource: "accounts/7", token } });
    server.process.kill("SIGTERM");
    await outputOf(server);
  });

  test("queue worker: two do six jobs, each once", async () => {
    const queue = join(folder, "queue");
    mkdirSync(queue);
    const jobs = ["a", "b", "c", "d", "e", "f"];
    for (const job of jobs) writeFileSync(join(queue, job), "");
    const workers = [1, 2].map(() => outputOf(example("queue-worker.mjs", [], { QUEUE: queue })));
    const outputs = (await Promise.all(workers)).join("");
    expect([...outputs.matchAll(/^(\w) done, token \d+$/gm)].map(([, job]) => job).sort()).toEqual(jobs);
  });

  test("who is alive: a worker that registers itself is seen, and its end, too", async () => {
    const worker = example("who-is-alive.mjs", ["w7"], { PORT: "8087" });
    await printed(worker, /workers\/w7 is registered/);
    const observer = example("who-is-alive.mjs");
    await printed(observer, /workers\/w7 is alive: .*"port":8087/);
    worker.process.kill("SIGTERM");
    await printed(observer, /workers\/w7 is gone/);
    observer.process.kill("SIGTERM");
    await outputOf(observer);
    expect(await outputOf(recipe("Which workers are alive"))).toMatch(/^workers\/w1 is alive: /);
  });

  test("semaphore: five programs share two slots", async () => {
    const programs = [1, 2, 3, 4, 5].map(() => outputOf(example("semaphore.mjs")));
    for (const output of await Promise.all(programs))
      expect(output).toMatch(/^has (place [01])\nleaves \1\n$/);
    expect(await outputOf(recipe("At most n at a time"))).toMatch(/^has place [01], token \d+\n$/);
    expect(await outputOf(recipe("Readers and a writer"))).toMatch(/with the greater token true\n$/);
  });

  test("migration: each step is applied once in a run", async () => {
    expect(await outputOf(recipe("A migration that runs once"))).toMatch(
      /^applies 002, token (\d+)\napplies 003, token \1\n$/,
    );
  });

  test("Fastify, Express and Hono: the handlers of the recipe", async () => {
    const frameworks = ["fastify@5.12.8", "express@5.3.0", "hono@4.13.19", "@hono/node-server@2.1.8"];
    await run(project, "npm", ["install", ...quiet, ...frameworks]);
    const frame = (name: string, before: string, code: string, after: string) => {
      const begin = `import { open } from "leasehold"; const leases = await open("${cluster.LEASEHOLD_MEMBER}");`;
      const book = "const book = async (order, lease) => lease.assertHeld(500);";
      const tell = "const tell = (port) => console.log(`http://127.0.0.1:${port}`);";
      writeFileSync(join(project, `${name}.mjs`), [begin, book, tell, before, code, after].join("\n"));
      return node([`${name}.mjs`]);
    };
    const [fastify, express, hono] = codeOf("An HTTP handler");
    const servers = [
      frame(
        "with-fastify",
        'import Fastify from "fastify"; const fastify = Fastify();',
        fastify!,
        "await fastify.listen({ port: 0 }); tell(fastify.server.address().port);",
      ),
      frame(
        "with-express",
        'import express from "express"; const app = express().use(express.json());',
        express!,
        "const server = app.listen(0, () => tell(server.address().port));",
      ),
      frame(
        "with-hono",
        'import { Hono } from "hono"; import { serve } from "@hono/node-server"; const hono = new Hono();',
        hono!,
        "serve({ fetch: hono.fetch, port: 0 }, ({ port }) => tell(port));",
      ),
    ];
    for (const server of servers) {
      const [url] = await printed(server, /http:\S+/);
      const post = () =>
        fetch(`${url}/accounts/7`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: '{"amount":1}',
        });
      const reply = await post();
      const { lease } = (await reply.json()) as { lease: { token: string; remainingMs: number } };
      expect({ status: reply.status, token: reply.headers.get("x-fencing-token") }).toEqual({
        status: 200,
        token: lease.token,
      });
      expect(lease.remainingMs).toBeGreaterThan(0);
      const holding = await held("accounts/7");
      const refused = await post();
      expect({ status: refused.status, after: refused.headers.get("retry-after") }).toEqual({
        status: 423,
        after: "1",
      });
      await interrupt(holding);
      server.process.kill("SIGKILL");
    }
  });
});
