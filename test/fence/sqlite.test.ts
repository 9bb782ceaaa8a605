import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  checkInTransaction,
  type SqliteDatabase,
  SqliteFence,
  type SqliteFenceOptions,
} from "@leasehold/fence/sqlite";
import { type Guarded, holdersOf, next, runFenceConformance } from "./conformance.js";

type Database = SqliteDatabase & { close(): void };

const root = fileURLToPath(new URL("../..", import.meta.url));

const { sqlite } = (await import(new URL("tools/drivers.mjs", import.meta.url).href)) as {
  sqlite: Record<string, (path: string) => Database>;
};

interface InSqlite extends Guarded<() => unknown> {
  readonly database: Database;
  /** Another connection. */
  open(): Database;
  fence(options?: SqliteFenceOptions): SqliteFence;
}

async function make(driver: string, mode = "wal"): Promise<InSqlite> {
  const folder = await mkdtemp(join(tmpdir(), "leasehold-fence-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "reports.db");
  const open = () => {
    const opened = sqlite[driver]!(path);
    onTestFinished(() => opened.close());
    return opened;
  };
  const database = open();
  database.exec(`pragma journal_mode = ${mode}`);
  database.exec(
    "create table reports (id integer primary key, body text); insert into reports values (1, '')",
  );
  await new SqliteFence(database, "report").setUp();
  const update = "update reports set body = ? where id = 1";
  return {
    kind: "sqlite",
    place: `${driver} ${path}`,
    database,
    open,
    fence: (options) => new SqliteFence(database, "report", options),
    change: (text) => () => database.prepare(update).run(text),
    read: async () => String(value(open(), "select body from reports")),
  };
}

function value(database: Database, sql: string): unknown {
  return Object.values(database.prepare(sql).get() as object)[0];
}

/** The state of a process, by Linux's letter. */
function stateOf(pid: number): string {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]![0]!;
}

const busy = expect.objectContaining({ message: expect.stringContaining("locked") as string }) as Error;
const stale = { code: "TOKEN_STALE" };

for (const driver of Object.keys(sqlite)) {
  describe(`in SQLite by ${driver}`, () => {
    describe.each([
      ["in WAL mode", "wal"],
      ["with a rollback journal", "delete"],
    ])("%s", (_, mode) => {
      runFenceConformance(() => make(driver, mode));
    });

    test("a greater token waits for a write in its middle, so none comes between check and write", async () => {
      const { fence, open, change, read } = await make(driver);
      const other = new SqliteFence(open(), "report", { busyMs: 100 });
      let quick: Promise<unknown> = Promise.resolve();
      await fence().write(5n, () => {
        // Its first attempt is in the middle of this write.
        quick = other.write(6n, (database) => database.exec("update reports set body = 'six'"));
        change("five")();
      });
      await quick;
      await expect(fence().write(5n, change("late"))).rejects.toMatchObject(stale);
      expect(await read()).toBe("six");
    });

    test("a holder that is stopped in its transaction blocks others for a bounded time, and not their program", async () => {
      const { fence, database, change, read, kind, place } = await make(driver);
      database.exec("pragma busy_timeout = 60000");
      const begin = await holdersOf({ kind, place });
      const late = begin("late", "between");
      expect(await next(late)).toEqual({ stopped: "between" });
      let turns = 0;
      const timer = setInterval(() => turns++, 10);
      const beganMs = performance.now();
      await expect(fence({ busyMs: 500 }).write(100n, change("too early"))).rejects.toThrow(busy);
      clearInterval(timer);
      expect(performance.now() - beganMs).toBeLessThan(20_000);
      expect(turns).toBeGreaterThan(5);
      expect(value(database, "pragma busy_timeout")).toBe(60_000);
      // Killed in the middle, it leaves nothing.
      late.kill("SIGKILL");
      await fence().claim(100n);
      expect([await read(), await fence().greatest()]).toEqual(["", 100n]);
    });

    test("a holder that is stopped in its transaction and continues is followed by the next one", async () => {
      const { fence, change, read, kind, place } = await make(driver);
      const late = (await holdersOf({ kind, place }))("late", "between");
      expect(await next(late)).toEqual({ stopped: "between" });
      // The message comes before the signal.
      await expect.poll(() => stateOf(late.pid!)).toBe("T");
      const successor = fence({ busyMs: 60_000 }).write(100n, change("by the next holder"));
      late.kill("SIGCONT");
      expect(await next(late)).toMatchObject({ outcome: "written" });
      await successor;
      expect(await read()).toBe("by the next holder");
    });

    test("what throws in a write undoes it, token and all, and is rethrown", async () => {
      const { fence, change, read } = await make(driver);
      const failing = () => {
        change("half")();
        throw new Error("by the program");
      };
      await expect(fence().write(5n, failing)).rejects.toThrow("by the program");
      expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
    });

    test("an asynchronous change is refused before it is called", async () => {
      const { fence, read, database } = await make(driver);
      const asynchronous = async () => database.exec("update reports set body = 'late'");
      await expect(fence().write(5n, asynchronous)).rejects.toThrow(/must not be asynchronous/);
      expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
    });

    test("a change that returns a promise is rolled back", async () => {
      const { fence, change, read } = await make(driver);
      const promising = () => {
        change("half")();
        return Promise.reject(new Error("by the program"));
      };
      await expect(fence().write(5n, promising)).rejects.toThrow(/must not be asynchronous/);
      expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
      await fence().write(5n, change("five"));
      expect(await read()).toBe("five");
    });

    test.each(["commit", "rollback", "commit; begin"])(
      "a write that ends its transaction by %s is not reported as written",
      async (sql) => {
        const { fence, change, database } = await make(driver);
        const ending = () => {
          change("half")();
          database.exec(sql);
        };
        await expect(fence().write(5n, ending)).rejects.toMatchObject({ code: "WRITE_UNDONE" });
        await fence().write(6n, change("six"));
        expect(await fence().greatest()).toBe(6n);
      },
    );

    test("a transaction that the program has open is left alone", async () => {
      const { fence, change, database, read } = await make(driver);
      database.exec("begin");
      change("by the program")();
      await expect(fence().write(5n, change("five"))).rejects.toThrow(/transaction/);
      database.exec("commit");
      expect([await read(), await fence().greatest()]).toEqual(["by the program", 0n]);
    });

    test("two resources in one transaction are both checked", async () => {
      const { fence, change, database, read } = await make(driver);
      await new SqliteFence(database, "Report").claim(8n);
      const both = () => {
        change("both")();
        checkInTransaction(database, "Report", 7n);
      };
      await expect(fence().write(5n, both)).rejects.toMatchObject(stale);
      expect([await read(), await fence().greatest()]).toEqual(["", 0n]);
    });

    test("the result of a change is returned", async () => {
      const { fence, database } = await make(driver);
      const changes = await fence().write(5n, () => value(database, "select 2 + 3"));
      expect(changes).toBe(5);
    });

    test("the example of docs/fences.md writes, and refuses a smaller token", async () => {
      const { database } = await make(driver);
      database.exec("drop table reports; drop table leasehold_fence; create table reports (name, body)");
      database.exec("insert into reports values ('nightly', '')");
      const page = readFileSync(join(root, "docs/fences.md"), "utf8");
      const example = page.split("```js\n").find((part) => part.includes("new SqliteFence("))!;
      // A reader's program: what it opens is an argument here.
      const body = `return (async () => { ${example.split("```")[0]!.replace(/const database = .*/, "")} })()`;
      const run = new Function("database", "SqliteFence", "lease", body) as (
        ...given: unknown[]
      ) => Promise<void>;
      await run(database, SqliteFence, { token: 2n });
      expect(value(database, "select body from reports")).toBe("done");
      await expect(run(database, SqliteFence, { token: 1n })).rejects.toMatchObject(stale);
    });
  });
}

/** Another line's binary, as `scripts/test-nodes.mjs` has installed it. */
function otherNode(): string {
  const cache = process.env["LEASEHOLD_NODES_DIR"] ?? join(root, "node_modules/.cache/leasehold-nodes");
  const lines = existsSync(cache)
    ? readdirSync(cache).filter((line) => Number(line.split(".")[0]) >= 24)
    : [];
  const binaries = lines.map((line) =>
    join(cache, line, `node_modules/node-${process.platform}-${process.arch}/bin/node`),
  );
  const found = binaries.find((binary) => existsSync(binary));
  if (found === undefined) throw new Error("first: node scripts/test-nodes.mjs install 24.21.0");
  return found;
}

describe.skipIf("node:sqlite" in sqlite)("in SQLite by node:sqlite", () => {
  test("the tests of this file pass on a line of Node that has it", async () => {
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const words = ["run", "--project", "fence", "test/fence/sqlite.test.ts"];
    // Not as a worker of this run.
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")),
    );
    const child = spawn(otherNode(), [vitest, ...words], { cwd: root, env });
    onTestFinished(() => void child.kill("SIGKILL"));
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (output += String(part)));
    const [code] = (await once(child, "close")) as [number | null];
    expect(output).toMatch(/in SQLite|passed/);
    expect([code, code === 0 ? "" : output]).toEqual([0, ""]);
  });
});
