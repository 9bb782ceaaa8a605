import { createClient } from "@redis/client";
import { S3 } from "@aws-sdk/client-s3";
import pg from "pg";
import { Client, credentials } from "@grpc/grpc-js";
import { DirectoryFence } from "@leasehold/fence/directory";
import { refusalOf, tokenInterceptor } from "@leasehold/fence/grpc";
import { MysqlFence } from "@leasehold/fence/mysql";
import { PostgresFence } from "@leasehold/fence/postgres";
import { RedisFence } from "@leasehold/fence/redis";
import { S3Fence } from "@leasehold/fence/s3";
import { SqliteFence } from "@leasehold/fence/sqlite";

/**
 * The fences as a holder uses them, by kind. Each guards one text at a place. `between` runs after the check
 * and before the write, if the fence has such a moment.
 */
export const openers = {
  async postgres(url) {
    const pool = new pg.Pool({ connectionString: url });
    pool.on("error", () => undefined);
    const fence = new PostgresFence(pool, "report", { idleMs: 1_000 });
    return {
      writeText: (token, text, between) =>
        fence.write(token, async (client) => {
          await between?.();
          await client.query("update reports set body = $1 where id = 1", [text]);
        }),
      close: () => pool.end(),
    };
  },
  async mysql(url) {
    const { mysql } = await import("./tools/drivers.mjs");
    const pool = mysql.createPool(url);
    const fence = new MysqlFence(pool, "report", { idleSeconds: 1 });
    return {
      writeText: (token, text, between) =>
        fence.write(token, async (client) => {
          await between?.();
          await client.query("update reports set body = ? where id = 1", [text]);
        }),
      close: () => pool.end(),
    };
  },
  async sqlite(place) {
    const { sqlite } = await import("./tools/drivers.mjs");
    const [driver, path] = place.split(" ");
    const database = sqlite[driver](path);
    const fence = new SqliteFence(database, "report");
    return {
      writeText: (token, text, between) =>
        fence.write(token, () => {
          database.prepare("update reports set body = ? where id = 1").run(text);
          between?.();
        }),
      close: async () => database.close(),
    };
  },
  async directory(root) {
    const fence = new DirectoryFence(root);
    return {
      writeText: (token, text) => fence.write(token, { name: "report", content: text }),
      close: async () => undefined,
    };
  },
  async grpc(address) {
    const client = new Client(address, credentials.createInsecure());
    const encode = (text) => Buffer.from(text);
    return {
      writeText: (token, text) =>
        new Promise((resolve, reject) => {
          const options = { interceptors: [tokenInterceptor(token)] };
          client.makeUnaryRequest("/Reports/Put", encode, String, text, options, (error) =>
            error === null ? resolve() : reject(Object.assign(error, { code: refusalOf(error) })),
          );
        }),
      close: async () => client.close(),
    };
  },
  async redis(place) {
    const [port, key] = place.split(" ");
    const client = createClient({ url: `redis://127.0.0.1:${port}` });
    client.on("error", () => undefined);
    await client.connect();
    const fence = new RedisFence(client, `${key}:fence`);
    return {
      writeText: (token, text) => fence.write(token, [["SET", key, text]]),
      close: async () => client.destroy(),
    };
  },
  async s3(place) {
    const { key, ...options } = JSON.parse(place);
    const s3 = new S3(options);
    // Runs `between` after the content was written and before the pointer is.
    let before;
    const client = {
      getObject: (input) => s3.getObject(input),
      deleteObject: (input) => s3.deleteObject(input),
      putObject: async (input) => {
        if (input.Key === key) await before?.();
        return s3.putObject(input);
      },
    };
    const fence = new S3Fence(client, { bucket: "fences", key });
    await fence.setUp();
    return {
      writeText: (token, text, between) => {
        before = between;
        return fence.write(token, { body: text });
      },
      close: async () => s3.destroy(),
    };
  },
};
