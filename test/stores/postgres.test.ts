import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runStoreConformance } from "../../packages/leasehold/src/stores/conformance.js";
import type { OpenedStore } from "../../packages/leasehold/src/stores/common/contract.js";
import { openPostgresStore } from "../../packages/leasehold/src/stores/postgres/open.js";
import { poolerProgram, PostgresServer } from "./servers/postgres.js";
import { run } from "./servers/process.js";
import { failing, failureOf, known, measure, read, refusalOf, replace, report, write } from "./support.js";

async function start(settings?: Record<string, string>): Promise<PostgresServer> {
  const server = await PostgresServer.start(settings);
  onTestFinished(() => server.close());
  return server;
}

async function open(url: URL, environment: Record<string, string> = {}): Promise<OpenedStore> {
  const store = await openPostgresStore(url, { writer: "test", environment });
  onTestFinished(() => store.close());
  return store;
}

const servers: PostgresServer[] = [];
beforeAll(async () => {
  servers.push(await PostgresServer.start());
  servers.push(await PostgresServer.start({ synchronous_commit: "off" }));
  servers.push(await PostgresServer.start({ default_transaction_isolation: "serializable" }));
});
afterAll(() => Promise.all(servers.map((server) => server.close())));

describe("three servers", () => {
  let grounds = 0;
  const kinds = ["as it comes", "with asynchronous commits", "with serializable transactions"];
  describe.each(kinds.map((kind, index) => [kind, index] as const))("%s", (_, index) => {
    runStoreConformance({ describe, test }, "atomic", async () => {
      const server = servers[index]!;
      const schema = `ground_${grounds++}`;
      return {
        kind: "atomic",
        open: (writer) => openPostgresStore(server.url(schema), { writer, environment: {} }),
        forget: async () => void (await server.query(`truncate ${schema}.registers`)),
        close: async () => void (await server.query(`drop schema if exists ${schema} cascade`)),
      };
    });
  });

  describe.runIf(existsSync(poolerProgram))("through a transaction pooler", () => {
    runStoreConformance({ describe, test }, "atomic", async () => {
      const server = servers[0]!;
      const [schema, pooler] = [`ground_${grounds++}`, await server.startPooler()];
      const url = server.url(schema);
      url.port = String(pooler.port);
      return {
        kind: "atomic",
        open: (writer) => openPostgresStore(url, { writer, environment: {} }),
        forget: async () => void (await server.query(`truncate ${schema}.registers`)),
        async close() {
          await pooler.close();
          await server.query(`drop schema if exists ${schema} cascade`);
        },
      };
    });
  });

  test("the last of 500 writes is read, and the time of an operation is reported", async () => {
    for (const server of servers.slice(0, 2)) {
      const store = await open(server.url("latency"));
      const { id } = await write(store, "r", "0");
      const reads = await measure(500, () => read(store, "r"));
      const replaces = await measure(500, (n) => replace(store, "r", id, String(n), String(n + 1)));
      report(`postgres: read ${reads}; replace ${replaces}`);
      expect(await read(store, "r")).toEqual({ id, text: "500" });
    }
  });
});

describe("lost data", () => {
  test("a crash loses nothing, also where commits are asynchronous by default", async () => {
    const server = await start({ synchronous_commit: "off", wal_writer_delay: "10s" });
    const store = await open(server.url());
    expect(store.traits.durable).toBe(true);
    for (let n = 0; n < 20; n++) await write(store, "r", `write ${n}`);
    const before = await read(store, "r");
    await server.kill();
    await server.restart();
    await expect.poll(() => read(store, "r").catch(String)).toEqual(before);
  });

  test("a standby that takes over is a different store, although it has the same marker", async () => {
    const primary = await start();
    const before = await write(await open(primary.url()), "r", "before");
    const standby = await primary.startStandby();
    onTestFinished(() => standby.close());
    expect(await refusalOf(openPostgresStore, standby.url())).toMatchObject(
      failing("STORE_READ_ONLY", /standby/),
    );
    await primary.kill();
    await standby.query("select pg_promote()");
    const after = await read(await open(standby.url()), "r");
    expect(after.text).toBe("before");
    expect(after.id).not.toBe(before.id);
    expect(after.id.split("@")[0]).toBe(before.id.split("@")[0]);
  });

  test("without fsync a restart counts as a loss of data", async () => {
    const server = await start({ fsync: "off" });
    const store = await open(server.url());
    expect(store.traits.durable).toBe(false);
    const { id } = await write(store, "r", "before");
    await server.restart();
    await expect.poll(() => read(store, "r").then(({ text }) => text, String)).toBe("before");
    expect((await read(store, "r")).id).not.toBe(id);
  });

  test("nothing is written while the table is being emptied, not even a new row", async () => {
    const [server] = servers as [PostgresServer];
    const store = await open(server.url("emptied"));
    const { id } = await write(store, "r", "before");
    const emptying = server.query("begin; delete from emptied.registers; select pg_sleep(1); commit");
    await new Promise((resolve) => setTimeout(resolve, 300));
    const answers = await Promise.all([
      replace(store, "new", id, undefined, "next"),
      replace(store, "r", id, "before", "next"),
    ]);
    await emptying;
    for (const answer of answers) {
      expect(answer).toMatchObject({ kind: "conflict", cells: [] });
      expect(known(answer).id).not.toBe(id);
    }
  });

  test("a table that does not survive a crash is refused", async () => {
    const [server] = servers as [PostgresServer];
    await server.query("create schema unlogged");
    await server.query(
      'create unlogged table unlogged.registers (register text collate "C" primary key, content bytea not null)',
    );
    expect(await refusalOf(openPostgresStore, server.url("unlogged"))).toMatchObject(
      failing("STORE_UNFIT", /crash empties it/),
    );
  });
});

describe("failures", () => {
  test("a write to a row that another transaction has locked waits until that transaction ends", async () => {
    const [server] = servers as [PostgresServer];
    const store = await open(server.url("waits"));
    const { id } = await write(store, "r", "before");
    const blocker = server.query(
      "begin; select * from waits.registers for update; select pg_sleep(1.5); commit",
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    const signal = AbortSignal.timeout(300);
    const next = {
      op: "replace",
      register: "r",
      id,
      expected: Buffer.from("before"),
      next: Buffer.from("next"),
    } as const;
    expect(await failureOf(store.perform(next, { signal }))).toMatchObject(
      failing("STORE_UNAVAILABLE", /given up/),
    );
    expect((await read(store, "r")).text).toBe("before");
    await blocker;
    await expect.poll(() => read(store, "r").then(({ text }) => text)).toBe("next");
  });

  test("operations fail at once when the server is killed, and it is found again", async () => {
    const server = await start();
    const store = await open(server.url());
    await write(store, "r", "before");
    await server.kill();
    expect((await failureOf(store.perform({ op: "read", register: "r" }))).code).toBe("STORE_UNAVAILABLE");
    expect(await refusalOf(openPostgresStore, server.url())).toMatchObject(
      failing("STORE_UNAVAILABLE", /ECONNREFUSED/),
    );
    await server.restart();
    expect((await read(store, "r")).text).toBe("before");
  });

  test("opening a server that is stopped can be cancelled", async () => {
    const server = await start();
    server.freeze();
    const signal = AbortSignal.timeout(200);
    await expect(openPostgresStore(server.url(), { writer: "test", signal })).rejects.toThrow(/timeout/);
  });

  test("a wrong or missing password is refused with STORE_PERMISSION, and one from .pgpass is used", async () => {
    const server = await start();
    await server.query("create user keeper password 'right-4711'");
    await server.query("create schema kept authorization keeper");
    await server.demandPasswords();
    const url = server.url("kept", "keeper");
    expect(await refusalOf(openPostgresStore, url)).toMatchObject(failing("STORE_PERMISSION", /password/));
    const wrong = { PGPASSWORD: "wrong-4711" };
    expect(await refusalOf(openPostgresStore, url, wrong, ["wrong-4711"])).toMatchObject(
      failing("STORE_PERMISSION", /keeper/),
    );
    const store = await open(url, { PGPASSWORD: "right-4711" });
    expect(JSON.stringify([store.traits, store.findings])).not.toContain("4711");
    const passFile = join(server.directory, "pgpass");
    await writeFile(passFile, `127.0.0.1:${server.port}:*:keeper:right-4711\n`, { mode: 0o600 });
    process.env["PGPASSFILE"] = passFile;
    onTestFinished(() => void delete process.env["PGPASSFILE"]);
    await open(url);
  });

  test("a user that may not create the table, or not write to it, is refused with STORE_PERMISSION", async () => {
    const [server] = servers as [PostgresServer];
    await server.query("create user narrow");
    expect(await refusalOf(openPostgresStore, server.url("denied", "narrow"))).toMatchObject(
      failing("STORE_PERMISSION", /permission denied for database/),
    );
    await open(server.url("granted"));
    await server.query(
      "grant usage on schema granted to narrow; grant select on granted.registers to narrow",
    );
    expect(await refusalOf(openPostgresStore, server.url("granted", "narrow"))).toMatchObject(
      failing("STORE_PERMISSION", /permission denied for table/),
    );
    await server.query("grant insert, update on granted.registers to narrow");
    await open(server.url("granted", "narrow"));
  });

  test("a database that is missing, or read-only for its user, is refused", async () => {
    const [server] = servers as [PostgresServer];
    const missing = server.url();
    missing.pathname = "/nowhere";
    expect(await refusalOf(openPostgresStore, missing)).toMatchObject(
      failing("STORE_UNAVAILABLE", /"nowhere" does not exist/),
    );
    await server.query(
      "create user reader superuser; alter user reader set default_transaction_read_only = on",
    );
    expect(await refusalOf(openPostgresStore, server.url("x", "reader"))).toMatchObject(
      failing("STORE_READ_ONLY", /read only/),
    );
  });

  test("a table that does not belong to Leasehold is left unchanged", async () => {
    const [server] = servers as [PostgresServer];
    await server.query(
      "create schema theirs; create table theirs.registers (register text primary key, owner text)",
    );
    await server.query("insert into theirs.registers values ('car', 'me')");
    expect(await refusalOf(openPostgresStore, server.url("theirs"))).toMatchObject(
      failing("STORE_FOREIGN", /not Leasehold's/),
    );
    expect(await server.query("select * from theirs.registers")).toEqual([{ register: "car", owner: "me" }]);
  });

  test.runIf(process.getuid?.() === 0)("a write to a full disk fails with STORE_FULL", async () => {
    const server = await start();
    const place = join(server.directory, "small");
    await run("mkdir", [place]);
    await run("mount", ["-t", "tmpfs", "-o", "size=256k,mode=0777", "tmpfs", place]);
    onTestFinished(async () => {
      await server.kill();
      await run("umount", [place]);
    });
    await run("chown", ["postgres", place]);
    await server.query(`create tablespace small location '${place}'`);
    await server.query("alter role boss set default_tablespace = small");
    const store = await open(server.url());
    const fill = async () => {
      for (let n = 0; n < 400; n++)
        await write(
          store,
          `r${n}`,
          Buffer.from(Array.from({ length: 1500 }, () => 65 + Math.random() * 26)).toString(),
        );
    };
    const error: unknown = await fill().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "STORE_FULL" });
  });
});
