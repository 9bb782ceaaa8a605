import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { S3 } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { PostgresServer } from "../stores/servers/postgres.js";
import { RedisServer } from "../stores/servers/redis.js";
import { accessKeyId, S3Server, secretAccessKey } from "../stores/servers/s3.js";
import { eventually } from "../support/built.js";
import { type LocalCluster, startLocalCluster } from "../support/local-cluster.js";
import { installed } from "./support/install.js";

/** Each example of `examples/frameworks`, in at least two processes, with the framework from npm. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = join(root, "examples/frameworks");
const folder = installed("examples", JSON.parse(readFileSync(join(examples, "package.json"), "utf8")));

let cluster: LocalCluster;
const started: ChildProcess[] = [];

interface Running {
  readonly process: ChildProcess;
  readonly closed: Promise<number | null>;
  output(): string;
}

function start(words: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...process.env, NODE_ENV: "", LEASEHOLD_MEMBER: cluster.urls[0], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { process: child, closed, output: () => output };
}

const printed = (running: Running, pattern: RegExp) =>
  eventually(`${pattern}`, () => pattern.exec(running.output()) ?? undefined, 60_000).catch(() => {
    throw new Error(`no ${pattern} in: ${running.output()}`);
  });

interface Work {
  readonly at: "begin" | "end";
  readonly name: string;
  readonly token: number;
  readonly ms: number;
  readonly by: number;
}

/**
 * The lines of `work.mjs` of all processes, sorted by time, with the end of one work before the begin of the
 * next.
 */
function workOf(processes: readonly Running[]): Work[] {
  const all = processes.flatMap((each, by) =>
    (each.output().match(/^\{"at".*\}$/gm) ?? []).map((line) => ({ ...(JSON.parse(line) as Work), by })),
  );
  return all.sort((a, b) => a.ms - b.ms || a.token - b.token || (a.at === "end" ? -1 : 1));
}

/**
 * The lines that violate sequential work: each begin must be followed by its own end, and tokens must rise.
 */
function outOfTurn(work: readonly Work[]): Work[] {
  return work.filter((each, index) => {
    const before = work[index - 1];
    if (each.at === "begin") return before?.at === "begin" || each.token < (before?.token ?? 0);
    return before?.at !== "begin" || before.by !== each.by || before.token !== each.token;
  });
}

beforeAll(async () => {
  cpSync(examples, folder, { recursive: true });
  for (const name of ["leasehold", "@leasehold"]) {
    const link = join(folder, "node_modules", name);
    if (!existsSync(link)) symlinkSync(join(root, "node_modules", name), link);
  }
  cluster = await startLocalCluster({ ttlMax: "4s", rpcTimeout: "500ms" });
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});
afterAll(() => cluster.close());

test("bullmq.mjs: each job once, and one at a time for a customer", async () => {
  const redis = await RedisServer.start();
  const jobs = [..."abcdef"].map((mail, index) => ({ mail, customer: `c${index % 2}` }));
  const add = `import { Queue } from "bullmq";
const queue = new Queue("mails", { connection: { port: ${redis.port} } });
await queue.addBulk(${JSON.stringify(jobs)}.map((data) => ({ name: "mail", data })));
await queue.close();`;
  writeFileSync(join(folder, "add-jobs.mjs"), add);
  expect(await start(["add-jobs.mjs"]).closed).toBe(0);
  const workers = [1, 2].map(() => start(["bullmq.mjs"], { REDIS_PORT: String(redis.port) }));
  const ended = () => workOf(workers).filter(({ at }) => at === "end").length >= jobs.length;
  await eventually("all jobs are done", ended, 60_000);
  for (const { process: child } of workers) child.kill("SIGTERM");
  expect(await Promise.all(workers.map(({ closed }) => closed))).toEqual([0, 0]);
  const work = workOf(workers);
  expect(
    work
      .filter(({ at }) => at === "begin")
      .map(({ name }) => name)
      .sort(),
  ).toEqual(jobs.map(({ customer, mail }) => `${customer} ${mail}`).sort());
  for (const customer of ["c0", "c1"])
    expect(outOfTurn(work.filter(({ name }) => name.startsWith(customer)))).toEqual([]);
  await redis.close();
});

test.each(["node-cron.mjs", "croner.mjs"])(
  "%s: one of three does the work of each scheduled time",
  async (name) => {
    // The lease that is detached expires after 4 s.
    const env = { SCHEDULE: "*/8 * * * * *", WORK_MS: "1" };
    const machines = [1, 2, 3].map(() => start([name], env));
    const begun = () => workOf(machines).filter(({ at }) => at === "begin");
    await eventually("three moments", () => begun().length >= 3, 60_000);
    await sleep(1_000);
    const moments = begun().map(({ ms }) => Math.floor(ms / 8_000));
    expect(moments).toEqual(moments.map((_, index) => moments[0]! + index));
  },
);

test("knex.mjs: two that start together migrate once, and one that died in a migration blocks no other", async () => {
  const database = await PostgresServer.start();
  const env = { DATABASE_URL: `postgres://boss@127.0.0.1:${database.port}/postgres` };
  const dying = start(["knex.mjs"], { ...env, WORK_MS: "60000" });
  const isLocked = () => database.query("select 1 from knex_migrations_lock where is_locked = 1");
  await printed(dying, /migrating/);
  dying.process.kill("SIGKILL");
  await database.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where query ~ 'pg_sleep' and pid <> pg_backend_pid()",
  );
  expect(await isLocked()).toHaveLength(1);
  const both = [1, 2].map(() => start(["knex.mjs"], env));
  const codes = await Promise.all(both.map(({ closed }) => closed));
  expect({ codes, output: both.map(({ output }) => output()).sort() }).toEqual({
    codes: [0, 0],
    output: ["batch 1: 0 migrations\n", "migrating\nbatch 1: 1 migrations\n"],
  });
  expect(await database.query("select * from knex_reports")).toHaveLength(1);
  await database.close();
});

test("drizzle.mjs: three that start together migrate once", async () => {
  const database = await PostgresServer.start();
  const env = { DATABASE_URL: `postgres://boss@127.0.0.1:${database.port}/postgres` };
  const all = [1, 2, 3].map(() => start(["drizzle.mjs"], env));
  const codes = await Promise.all(all.map(({ closed }) => closed));
  expect({ codes, output: all.map(({ output }) => output()) }).toEqual({
    codes: [0, 0, 0],
    output: ["migrated\n", "migrated\n", "migrated\n"],
  });
  expect(await database.query("select * from drizzle_reports")).toHaveLength(1);
  expect(await database.query("select * from drizzle.__drizzle_migrations")).toHaveLength(1);
  await database.close();
});

test("express.mjs: one of two servers handles an account, and the other answers 423", async () => {
  const ports = await freePorts(2);
  const servers = ports.map((port) => start(["express.mjs"], { PORT: String(port), WORK_MS: "1500" }));
  await Promise.all(servers.map((server) => printed(server, /listens/)));
  const post = (port: number, account: string) =>
    fetch(`http://127.0.0.1:${port}/accounts/${account}`, { method: "POST" });
  const first = post(ports[0]!, "7");
  await printed(servers[0]!, /begin/);
  const [second, other] = await Promise.all([post(ports[1]!, "7"), post(ports[1]!, "8")]);
  expect([second.status, second.headers.get("retry-after"), other.status]).toEqual([423, "1", 200]);
  const token = (await first).headers.get("x-fencing-token");
  const third = await post(ports[1]!, "7");
  expect([(await first).status, third.status]).toEqual([200, 200]);
  expect(BigInt(third.headers.get("x-fencing-token")!)).toBeGreaterThan(BigInt(token!));
  expect(outOfTurn(workOf(servers).filter(({ name }) => name === "accounts/7"))).toEqual([]);
  for (const { process: child } of servers) child.kill("SIGTERM");
  expect(await Promise.all(servers.map(({ closed }) => closed))).toEqual([0, 0]);
});

test("serverless.mjs: one of two instances has an order; they share only the bucket", async () => {
  const s3 = await S3Server.start();
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3({ endpoint: s3.endpoint, region: "default", forcePathStyle: true, credentials });
  await client.createBucket({ Bucket: "leases" });
  client.destroy();
  const env = {
    LEASES_BUCKET: `delta+${s3.url("leases", "app")}`,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    WORK_MS: "1500",
  };
  // Each retries until it has had the order, like a client with retries.
  const call = `import { handler } from "./serverless.mjs";
import { setTimeout as sleep } from "node:timers/promises";
for (let answer; answer?.statusCode !== 200; await sleep(100)) {
  answer = await handler({ order: 7 }).catch(({ code }) => ({ statusCode: code }));
  console.log(answer.statusCode);
}
process.exit();`;
  writeFileSync(join(folder, "call.mjs"), call);
  const instances = [1, 2].map(() => start(["call.mjs"], env));
  const codes = await Promise.all(instances.map(({ closed }) => closed));
  const output = instances.map((each) => each.output()).join("");
  expect({ codes, output }).toEqual({ codes: [0, 0], output: expect.stringMatching(/^409$/m) as string });
  const work = workOf(instances);
  expect(work).toHaveLength(4);
  expect(outOfTurn(work)).toEqual([]);
  await s3.close();
});

test("leader-election.mjs: one leads, another leads after the first was killed or has stopped, and all know the leader", async () => {
  const nodes = [1, 2, 3].map(() => start(["leader-election.mjs"], { WORK_MS: "100" }));
  const leads = /^this process leads$/m;
  const next = async (others: readonly Running[]) =>
    eventually(
      "a leader",
      () => others.find((each) => leads.test(each.output())),
      60_000,
    ) as Promise<Running>;
  const first = await next(nodes);
  const others = nodes.filter((each) => each !== first);
  await Promise.all(others.map((each) => printed(each, / leads$/m)));
  expect(others.filter((each) => leads.test(each.output()))).toEqual([]);
  first.process.kill("SIGKILL");
  const second = await next(others);
  const third = others.find((each) => each !== second)!;
  second.process.kill("SIGTERM");
  expect(await second.closed).toBe(0);
  expect(second.output()).toMatch(/^stopped leading$/m);
  await printed(third, leads);
  await sleep(500);
  third.process.kill("SIGTERM");
  expect(await third.closed).toBe(0);
  const work = workOf(nodes);
  // The killed leader did not finish its work.
  const killed = work.filter(({ by }) => nodes[by] === first);
  const whole = killed.at(-1)?.at === "begin" ? work.filter((each) => each !== killed.at(-1)) : work;
  expect(new Set(whole.map(({ by }) => by)).size).toBe(3);
  expect(outOfTurn(whole)).toEqual([]);
});

test("nestjs.ts: an application's work waits for another's, and both end", async () => {
  const declaration =
    'export declare function work(name: string, lease: import("leasehold").Lease): Promise<void>;';
  writeFileSync(join(folder, "work.d.mts"), declaration);
  const compilerOptions = {
    module: "nodenext",
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    experimentalDecorators: true,
    strict: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["nestjs.ts"] }));
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [compiler, "-p", folder], { cwd: folder, stdio: "inherit" });
  const both = [1, 2].map(() => start(["nestjs.js"]));
  const codes = await Promise.all(both.map(({ closed }) => closed));
  expect({ codes, output: both.map(({ output }) => output()) }).toMatchObject({ codes: [0, 0] });
  const work = workOf(both);
  expect(work).toHaveLength(4);
  expect(outOfTurn(work)).toEqual([]);
});

test("every example is run here, and has at most 40 lines", () => {
  const self = readFileSync(fileURLToPath(import.meta.url), "utf8");
  const helpers = new Set(["once-in-the-cluster.mjs", "work.mjs"]);
  const files = readdirSync(examples).filter((name) => /\.m?[jt]s$/.test(name));
  expect(files.filter((name) => !helpers.has(name) && !self.includes(name))).toEqual([]);
  const long = files.filter((name) => readFileSync(join(examples, name), "utf8").split("\n").length > 41);
  expect(long).toEqual([]);
});
