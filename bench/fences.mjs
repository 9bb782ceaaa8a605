// Measures what a fence costs: the same small write with and without it, one after the other. Writes of both
// kinds alternate within a round, so that other load of the machine meets both. Prints a row of the table in
// docs/fences.md for each resource: the medians over the rounds of the times and of their ratio. Arguments:
// the rounds (7), the seconds of a round (2).
import { randomUUID } from "node:crypto";
import { mkdtemp, open, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3 } from "@aws-sdk/client-s3";
import { createClient } from "@redis/client";
import pg from "pg";
import { DirectoryFence } from "@leasehold/fence/directory";
import { MysqlFence } from "@leasehold/fence/mysql";
import { PostgresFence } from "@leasehold/fence/postgres";
import { RedisFence } from "@leasehold/fence/redis";
import { S3Fence } from "@leasehold/fence/s3";
import { SqliteFence } from "@leasehold/fence/sqlite";
import { mysql, sqlite } from "../test/fence/tools/drivers.mjs";
import { startBucket, startServer, stopServers } from "./storage-servers.mjs";

const rounds = Number(process.argv[2] ?? 7);
const forMs = 1_000 * Number(process.argv[3] ?? 2);
const token = 5n;
const table = "create table reports (id int primary key, body text)";
const row = "insert into reports values (1, '')";
const folder = await mkdtemp(join(tmpdir(), "leasehold-bench-fences-"));

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/** The median times of a write without the fence and with it, µs. */
async function round({ bare, fenced }) {
  const kinds = [bare, fenced].map((write) => ({ write, timesUs: [] }));
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    for (const { write, timesUs } of kinds) {
      const from = performance.now();
      await write(String(timesUs.length));
      timesUs.push((performance.now() - from) * 1_000);
    }
    kinds.reverse();
  }
  const medianOf = (wanted) => median(kinds.find(({ write }) => write === wanted).timesUs);
  return { without: medianOf(bare), withFence: medianOf(fenced) };
}

/** What is measured, by name: `bare` and `fenced` write a text, `close` ends the clients. */
const resources = {
  async PostgreSQL() {
    const found = await startServer("postgres", "PostgresServer");
    if (found === undefined) return undefined;
    const pool = new pg.Pool({
      host: "127.0.0.1",
      port: found.server.port,
      user: "boss",
      database: "postgres",
    });
    await pool.query(table);
    await pool.query(row);
    const fence = new PostgresFence(pool, "report");
    await fence.setUp();
    const change = (client, text) => client.query("update reports set body = $1 where id = 1", [text]);
    return {
      bare: (text) => change(pool, text),
      fenced: (text) => fence.write(token, (client) => change(client, text)),
      close: () => pool.end(),
    };
  },
  async MariaDB() {
    const found = await startServer("mariadb", "MariadbServer", async (port) =>
      (await mysql.createConnection({ host: "127.0.0.1", port, user: "root" })).end(),
    );
    if (found === undefined) return undefined;
    const pool = mysql.createPool({
      host: "127.0.0.1",
      port: found.server.port,
      user: "root",
      database: "mysql",
    });
    await pool.query(table);
    await pool.query(row);
    const fence = new MysqlFence(pool, "report");
    await fence.setUp();
    const change = (client, text) => client.query("update reports set body = ? where id = 1", [text]);
    return {
      bare: (text) => change(pool, text),
      fenced: (text) => fence.write(token, (client) => change(client, text)),
      close: () => pool.end(),
    };
  },
  async SQLite() {
    const [driver] = Object.keys(sqlite);
    if (driver === undefined) return undefined;
    const database = sqlite[driver](join(folder, "reports.db"));
    database.exec("pragma journal_mode = wal; pragma synchronous = full");
    database.exec(`${table}; ${row}`);
    const fence = new SqliteFence(database, "report");
    await fence.setUp();
    const update = database.prepare("update reports set body = ? where id = 1");
    return {
      bare: async (text) => update.run(text),
      fenced: (text) => fence.write(token, () => update.run(text)),
      close: async () => database.close(),
    };
  },
  async Redis() {
    const found = await startServer("redis", "RedisServer");
    if (found === undefined) return undefined;
    const client = createClient({ url: `redis://127.0.0.1:${found.server.port}` });
    await client.connect();
    const fence = new RedisFence(client, "report:fence");
    return {
      bare: (text) => client.set("report", text),
      fenced: (text) => fence.write(token, [["SET", "report", text]]),
      close: async () => client.destroy(),
    };
  },
  async "a folder"() {
    const fence = new DirectoryFence(join(folder, "reports"));
    const sync = async (path, flags, content) => {
      const file = await open(path, flags);
      if (content !== undefined) await writeFile(file, content);
      await file.sync();
      await file.close();
    };
    return {
      // As durable and as atomic.
      bare: async (text) => {
        const fresh = join(folder, randomUUID());
        await sync(fresh, "wx", text);
        await rename(fresh, join(folder, "report"));
        await sync(folder, "r");
      },
      fenced: (text) => fence.write(token, { name: "report", content: text }),
      close: async () => undefined,
    };
  },
  async S3() {
    const found = await startBucket();
    if (found === undefined) return undefined;
    const client = new S3({ endpoint: found.server.endpoint, region: "us-east-1", forcePathStyle: true });
    const fence = new S3Fence(client, { bucket: "bench", key: "report" });
    await fence.setUp();
    return {
      bare: (text) => client.putObject({ Bucket: "bench", Key: "bare", Body: text }),
      fenced: (text) => fence.write(token, { body: text }),
      close: async () => client.destroy(),
    };
  },
};

const rounded = (us) => Number(us.toPrecision(2)).toLocaleString("en-US");
console.log("| one write, µs | without | with the fence | ratio |\n|---|---|---|---|");
try {
  for (const [name, start] of Object.entries(resources)) {
    const resource = await start();
    if (resource === undefined) continue;
    // Caches are cold at first.
    await round(resource);
    const results = [];
    for (let count = 0; count < rounds; count += 1) results.push(await round(resource));
    const without = median(results.map((each) => each.without));
    const withFence = median(results.map((each) => each.withFence));
    const ratio = median(results.map((each) => each.withFence / each.without));
    console.log(`| ${name} | ${rounded(without)} | ${rounded(withFence)} | ${ratio.toFixed(1)} |`);
    await resource.close();
    await stopServers();
  }
} finally {
  await stopServers();
  await rm(folder, { recursive: true, force: true });
}
