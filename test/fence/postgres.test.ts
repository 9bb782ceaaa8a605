import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { checkInTransaction, checkSql, isStale, PostgresFence, tableSql } from "@leasehold/fence/postgres";
import { PostgresServer } from "../stores/servers/postgres.js";
import { Gate, type Guarded, overtake, runFenceConformance } from "./conformance.js";

type Change = (client: pg.PoolClient) => Promise<unknown>;

let server: PostgresServer;
let schemas = 0;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server.close());

interface InPostgres extends Guarded<Change> {
  readonly pool: pg.Pool;
}

async function make(options = "", at = server): Promise<InPostgres> {
  const schema = `guarded_${schemas++}`;
  await at.query(`create schema ${schema}`);
  const settings = encodeURIComponent(`-c search_path=${schema} ${options}`);
  const place = `postgres://boss@127.0.0.1:${at.port}/postgres?options=${settings}`;
  const pool = new pg.Pool({ connectionString: place });
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  await pool.query("create table reports (id int primary key, body text not null)");
  await pool.query("insert into reports values (1, '')");
  await new PostgresFence(pool, "report").setUp();
  return {
    kind: "postgres",
    place,
    pool,
    fence: () => new PostgresFence<pg.PoolClient>(pool, "report"),
    change: (text) => (client) => client.query("update reports set body = $1 where id = 1", [text]),
    read: async () => String((await pool.query("select body from reports")).rows[0].body),
  };
}

describe("in PostgreSQL", () => {
  runFenceConformance(() => make());
});

test.each([
  ["read committed", "fulfilled"],
  // In the stricter levels the write fails and can be retried.
  ["repeatable read", "40001"],
  ["serializable", "40001"],
])(
  "a greater token waits for a write in its middle, so none comes between check and write: %s",
  async (isolation, end) => {
    const { fence, change, pool, read } = await make(
      `-c default_transaction_isolation=${isolation.replace(" ", "\\ ")}`,
    );
    await fence().claim(4n);
    const [inside, gate] = [new Gate(), new Gate()];
    const slow = fence().write(5n, async (client) => {
      inside.open();
      await gate.opened;
      await change("five")(client);
    });
    await inside.opened;
    const quick = fence().write(6n, change("six"));
    const ended = quick.then(
      () => "fulfilled",
      (error: { code: string }) => error.code,
    );
    // If check and write were not atomic, token 6 would succeed here, and token 5 would then overwrite it.
    const first = await Promise.race([ended, waitsForLock(pool).then(() => "waits")]);
    gate.open();
    await slow;
    expect([first, await ended]).toEqual(["waits", end]);
    await fence().write(6n, change("six"));
    await expect(fence().write(5n, change("late"))).rejects.toMatchObject({ code: "TOKEN_STALE" });
    expect(await read()).toBe("six");
  },
);

async function waitsForLock(pool: pg.Pool): Promise<void> {
  const waiting =
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%leasehold_fence%'";
  for (let tries = 0; tries < 500; tries++) {
    if ((await pool.query(`${waiting} and pid <> pg_backend_pid()`)).rows.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("a holder that is stopped in its transaction blocks the next one until its session times out", async () => {
  const guarded = await make();
  const { outcome } = (await overtake(guarded, "between"))!;
  // 25P03: PostgreSQL has ended the session. The driver may notice the closed connection first.
  expect(outcome).toMatch(/25P03|ECONNRESET|EPIPE|terminated/);
  expect(await guarded.read()).toBe("by the next holder");
});

test("a holder that is killed in its transaction leaves no part of it written", async () => {
  const guarded = await make();
  await overtake(guarded, "between", "SIGKILL");
  expect(await guarded.read()).toBe("by the next holder");
});

test("a crash of the server in the middle of a write loses the write, and no committed token", async () => {
  const crashing = await PostgresServer.start();
  onTestFinished(() => crashing.close());
  const { fence, change, read } = await make("", crashing);
  await fence().write(5n, change("five"));
  await expect(
    fence().write(6n, async (client) => {
      await change("six")(client);
      await crashing.kill();
      await crashing.restart();
    }),
  ).rejects.toThrow(/connection|terminat/i);
  await expect.poll(() => fence().greatest().catch(String)).toBe(5n);
  expect(await read()).toBe("five");
  await expect(fence().write(4n, change("late"))).rejects.toMatchObject({ code: "TOKEN_STALE" });
});

test("an error in a write undoes it, including the token, and is rethrown", async () => {
  const { fence, change, read } = await make();
  const failing = async (client: pg.PoolClient) => {
    await change("half")(client);
    throw new Error("by the program");
  };
  await expect(fence().write(5n, failing)).rejects.toThrow("by the program");
  expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
});

test("a write that ignores an error of a statement is not reported as written", async () => {
  const { fence, change, read } = await make();
  const careless = async (client: pg.PoolClient) => {
    await change("half")(client);
    await client.query("select 1 / 0").catch(() => undefined);
  };
  await expect(fence().write(5n, careless)).rejects.toMatchObject({ code: "WRITE_UNDONE" });
  expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
});

test("the statement alone stops a transaction whose program checks nothing", async () => {
  const { fence, change, pool, read } = await make();
  await fence().write(6n, change("six"));
  const client = await pool.connect();
  await client.query("begin");
  const refusal: unknown = await client.query(checkSql, ["report", "5"]).catch((error: unknown) => error);
  expect(isStale(new Error("of a driver", { cause: refusal }))).toBe(true);
  expect(isStale(new Error("another"))).toBe(false);
  await change("late")(client).catch(() => undefined);
  await client.query("commit");
  client.release();
  expect(await read()).toBe("six");
});

test("two resources in one transaction are both checked", async () => {
  const { fence, change, pool, read } = await make();
  await new PostgresFence(pool, "other").claim(8n);
  const both = fence().write(5n, async (client) => {
    await change("both")(client);
    await checkInTransaction(client, "other", 7n);
  });
  await expect(both).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
});

test("many callers set up the table at the same time", async () => {
  const { pool } = await make();
  await pool.query("drop table leasehold_fence");
  const fences = Array.from({ length: 8 }, () => new PostgresFence(pool, "report"));
  await Promise.all(fences.map((each) => each.setUp()));
  await pool.query(tableSql);
  await fences[0]!.claim(3n);
  expect(await fences[1]!.greatest()).toBe(3n);
});

test("the example of docs/fences.md writes, and refuses a smaller token", async () => {
  const { pool, place } = await make();
  await pool.query("drop table reports, leasehold_fence");
  await pool.query("create table reports (name text primary key, body text not null)");
  await pool.query("insert into reports values ('nightly', '')");
  const page = readFileSync(new URL("../../docs/fences.md", import.meta.url), "utf8");
  const example = page.split("```js\n").find((part) => part.includes("new PostgresFence("))!;
  const code = example.split("```")[0]!.replaceAll(/^import .*$/gm, "");
  const body = `return (async () => { ${code.replace("const pool = ", "pool = ")} })().finally(() => pool.end())`;
  // Runs the example as a program: its imports become arguments here.
  const run = new Function("pg", "PostgresFence", "connectionString", "lease", `let pool; ${body}`) as (
    ...given: unknown[]
  ) => Promise<void>;
  const as = (token: bigint) => run(pg, PostgresFence, place, { token });
  await as(2n);
  expect((await pool.query("select body from reports")).rows).toEqual([{ body: "done" }]);
  await expect(as(1n)).rejects.toMatchObject({ code: "TOKEN_STALE" });
});
