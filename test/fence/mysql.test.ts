import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  checkInTransaction,
  checkSql,
  isStale,
  type MysqlClient,
  MysqlFence,
  type MysqlFenceOptions,
  type MysqlPool,
  tableSql,
} from "@leasehold/fence/mysql";
import { MariadbServer } from "../stores/servers/mariadb.js";
import { Gate, type Guarded, overtake, runFenceConformance } from "./conformance.js";

type Change = (client: MysqlClient) => Promise<unknown>;

type Pool = MysqlPool & MysqlClient & { end(): Promise<void> };

// The driver has a lock of its own, so its types are not there for everybody.
const { mysql } = (await import(new URL("tools/drivers.mjs", import.meta.url).href)) as {
  mysql: {
    createPool(options: object): Pool;
    createConnection(options: object): Promise<{ end(): Promise<void> }>;
  };
};

const probe = async (port: number) =>
  (await mysql.createConnection({ host: "127.0.0.1", port, user: "root" })).end();

let server: MariadbServer;
let databases = 0;
beforeAll(async () => {
  server = await MariadbServer.start(probe);
});
afterAll(() => server.close());

function poolOf(options: object, at = server): Pool {
  const pool = mysql.createPool({ host: "127.0.0.1", port: at.port, user: "root", ...options });
  onTestFinished(() => pool.end());
  return pool;
}

interface InMysql extends Guarded<Change> {
  readonly pool: Pool;
  readonly database: string;
}

async function make(
  settings: readonly string[] = [],
  at = server,
  options: MysqlFenceOptions = {},
): Promise<InMysql> {
  const database = `guarded_${databases++}`;
  await poolOf({}, at).query(`create database ${database}`);
  const pool = poolOf({ database }, at);
  // For every connection of the pool: the driver's event comes before its first statement.
  const events = pool as unknown as { on(event: "connection", heard: (client: MysqlClient) => void): void };
  events.on("connection", (client) => settings.forEach((each) => void client.query(`set session ${each}`)));
  await pool.query("create table reports (id int primary key, body text not null) engine = innodb");
  await pool.query("insert into reports values (1, '')");
  await new MysqlFence(pool, "report").setUp();
  return {
    kind: "mysql",
    place: `mysql://root@127.0.0.1:${at.port}/${database}`,
    pool,
    database,
    fence: () => new MysqlFence(pool, "report", options),
    change: (text) => (client) => client.query("update reports set body = ? where id = 1", [text]),
    read: async () => String(await first(pool, "select body from reports")),
  };
}

async function first(client: MysqlClient, sql: string): Promise<unknown> {
  const [rows] = (await client.query(sql)) as [object[], unknown];
  return rows[0] === undefined ? undefined : (Object.values(rows[0])[0] as unknown);
}

describe("in MariaDB", () => {
  runFenceConformance(() => make());
});

test.each(["read committed", "repeatable read", "serializable"])(
  "a greater token waits for a write in its middle, so none comes between check and write: %s",
  async (isolation) => {
    const { fence, change, pool, read } = await make([`transaction isolation level ${isolation}`]);
    // The token of the slow write is not new: its row is locked although it stays as it is.
    await fence().claim(5n);
    const [inside, gate] = [new Gate(), new Gate()];
    let level: unknown;
    const slow = fence().write(5n, async (client) => {
      level = await first(client, "select lower(replace(@@tx_isolation, '-', ' '))");
      inside.open();
      await gate.opened;
      await change("five")(client);
    });
    await inside.opened;
    const quick = fence().write(6n, change("six"));
    const seen = await Promise.race([quick.then(() => "written"), waitsForLock(pool).then(() => "waits")]);
    gate.open();
    await slow;
    await quick;
    expect([level, seen]).toEqual([isolation, "waits"]);
    await expect(fence().write(5n, change("late"))).rejects.toMatchObject({ code: "TOKEN_STALE" });
    expect(await read()).toBe("six");
  },
);

async function waitsForLock(pool: Pool): Promise<void> {
  const waiting = "select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT'";
  for (let tries = 0; tries < 50; tries++) {
    if (Number(await first(pool, waiting)) > 0) return;
    // The server keeps its answer for 100 ms, and longer if it is read within that time.
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error("nobody waits for a lock");
}

test("a holder that is stopped in its transaction blocks the next one until its connection times out", async () => {
  const guarded = await make();
  const { outcome } = (await overtake(guarded, "between"))!;
  expect(outcome).toMatch(/closed|PROTOCOL_CONNECTION_LOST|ECONNRESET|EPIPE/);
  expect(await guarded.read()).toBe("by the next holder");
});

test("a holder that is killed in its transaction leaves nothing of it", async () => {
  const guarded = await make();
  await overtake(guarded, "between", "SIGKILL");
  expect(await guarded.read()).toBe("by the next holder");
});

test("a crash of the server in the middle of a write loses the write, and no token that was committed", async () => {
  const crashing = await MariadbServer.start(probe);
  onTestFinished(() => crashing.close());
  const { fence, change, read } = await make([], crashing);
  await fence().write(5n, change("five"));
  await expect(
    fence().write(6n, async (client) => {
      await change("six")(client);
      await crashing.kill();
      await crashing.restart();
    }),
  ).rejects.toThrow(/connection|closed/i);
  await expect.poll(() => fence().greatest().catch(String)).toBe(5n);
  expect(await read()).toBe("five");
  await expect(fence().write(4n, change("late"))).rejects.toMatchObject({ code: "TOKEN_STALE" });
});

test("what throws in a write undoes it, token and all, and is rethrown", async () => {
  const { fence, change, read } = await make();
  const failing = async (client: MysqlClient) => {
    await change("half")(client);
    throw new Error("by the program");
  };
  await expect(fence().write(5n, failing)).rejects.toThrow("by the program");
  expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
});

test("a statement's error that the program handles leaves the transaction as it is", async () => {
  const { fence, change, read } = await make();
  await fence().write(5n, async (client) => {
    await change("five")(client);
    await client.query("insert into reports values (1, 'again')").catch(() => undefined);
  });
  expect([await read(), await fence().greatest()]).toEqual(["five", 5n]);
});

describe("a write that ends its transaction is not reported as written, and what follows is undone", () => {
  test.each(["create table others (id int) engine = innodb", "commit", "start transaction"])(
    "by %s",
    async (sql) => {
      const { fence, change, read } = await make();
      const ending = async (client: MysqlClient) => {
        await change("before")(client);
        await client.query(sql);
        await change("after")(client);
      };
      await expect(fence().write(5n, ending)).rejects.toMatchObject({ code: "WRITE_UNDONE" });
      // What was committed was committed with the check.
      expect([await read(), await fence().greatest()]).toEqual(["before", 5n]);
    },
  );

  test("by a deadlock that it ignores", async () => {
    const { fence, change, pool, read } = await make();
    await pool.query("insert into reports values (2, ''), (3, ''), (4, ''), (5, ''), (6, '')");
    const other = await pool.getConnection();
    onTestFinished(() => other.destroy());
    await other.query("start transaction");
    // It has more rows, so the server rolls back the fence's transaction and not this one.
    await other.query("update reports set body = 'other' where id > 1");
    const careless = async (client: MysqlClient) => {
      await change("half")(client);
      const blocked = other.query("update reports set body = 'other' where id = 1");
      await waitsForLock(pool);
      await client.query("update reports set body = 'mine' where id = 2").catch(() => undefined);
      await blocked;
      await other.query("rollback");
      await change("unguarded")(client);
    };
    await expect(fence().write(5n, careless)).rejects.toMatchObject({ code: "WRITE_UNDONE" });
    expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
  });
});

test("a connection returns to the pool as it was", async () => {
  const database = "guarded_pool";
  await poolOf({}).query(`create database ${database}`);
  const pool = poolOf({ database, connectionLimit: 1 });
  const fence = new MysqlFence(pool, "report");
  await fence.setUp();
  const state = async () =>
    Object.values(
      (
        (await pool.query("select connection_id(), @@autocommit, @@wait_timeout, @@in_transaction")) as [
          object[],
          unknown,
        ]
      )[0][0]!,
    ) as unknown[];
  const before = await state();
  await fence.claim(5n);
  await expect(fence.claim(4n)).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect(before.slice(1)).toEqual([1, 28_800, 0]);
  expect(await state()).toEqual(before);
});

test("the statement alone fails, whatever the mode and the language of the server", async () => {
  const { fence, pool } = await make();
  await fence().claim(6n);
  const client = await pool.getConnection();
  onTestFinished(() => client.destroy());
  for (const setting of ["sql_mode = ''", "sql_mode = 'ansi'", "lc_messages = 'de_DE'"]) {
    await client.query(`set session ${setting}`);
    const refusal: unknown = await client.query(checkSql, ["report", "5"]).catch((error: unknown) => error);
    expect(isStale(new Error("of a driver", { cause: refusal }))).toBe(true);
  }
  expect(isStale(new Error("another"))).toBe(false);
  expect(await fence().greatest()).toBe(6n);
});

test("two resources in one transaction are both checked", async () => {
  const { fence, change, pool, read } = await make();
  await new MysqlFence(pool, "other").claim(8n);
  const both = fence().write(5n, async (client) => {
    await change("both")(client);
    await checkInTransaction(client, "other", 7n);
  });
  await expect(both).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
});

test("names that a collation takes for equal are different resources; others of 512 bytes fit", async () => {
  const { pool } = await make();
  await new MysqlFence(pool, "Report ").claim(8n);
  expect(await new MysqlFence(pool, "report").greatest()).toBe(0n);
  await new MysqlFence(pool, "ß".repeat(256)).claim(3n);
  expect(() => new MysqlFence(pool, "ß".repeat(257))).toThrow(/512 bytes/);
});

test("a column that somebody made unsigned compares the same", async () => {
  const { fence, change, pool } = await make();
  await pool.query("alter table leasehold_fence modify token bigint unsigned not null");
  await fence().write(9n, change("nine"));
  await expect(fence().write(8n, change("late"))).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect(await fence().greatest()).toBe(9n);
});

test("a table without transactions is unfit", async () => {
  const { fence, pool } = await make();
  await pool.query("alter table leasehold_fence engine = myisam");
  const fresh = new MysqlFence(pool, "report");
  await expect(fresh.setUp()).rejects.toMatchObject({ code: "RESOURCE_UNFIT" });
  expect(await fence().greatest()).toBe(0n);
});

test("many set up the table at once", async () => {
  const { pool } = await make();
  await pool.query("drop table leasehold_fence");
  const fences = Array.from({ length: 8 }, () => new MysqlFence(pool, "report"));
  await Promise.all(fences.map((each) => each.setUp()));
  await pool.query(tableSql);
  await fences[0]!.claim(3n);
  expect(await fences[1]!.greatest()).toBe(3n);
});

test("the example of docs/fences.md writes, and refuses a smaller token", async () => {
  const { pool, place } = await make();
  await pool.query("drop table reports, leasehold_fence");
  await pool.query("create table reports (name varchar(99) primary key, body text not null)");
  await pool.query("insert into reports values ('nightly', '')");
  const page = readFileSync(new URL("../../docs/fences.md", import.meta.url), "utf8");
  const example = page.split("```js\n").find((part) => part.includes("new MysqlFence("))!;
  const code = example.split("```")[0]!.replaceAll(/^import .*$/gm, "");
  const body = `return (async () => { ${code.replace("const pool = ", "pool = ")} })().finally(() => pool.end())`;
  // A reader's program: its imports are arguments here.
  const run = new Function("mysql", "MysqlFence", "url", "lease", `let pool; ${body}`) as (
    ...given: unknown[]
  ) => Promise<void>;
  const as = (token: bigint) => run(mysql, MysqlFence, place, { token });
  await as(2n);
  expect(await first(pool, "select body from reports")).toBe("done");
  await expect(as(1n)).rejects.toMatchObject({ code: "TOKEN_STALE" });
});
