import { createClient } from "@redis/client";
import pg from "pg";
import { DirectoryFence } from "@leasehold/fence/directory";
import { PostgresFence } from "@leasehold/fence/postgres";
import { RedisFence } from "@leasehold/fence/redis";

/**
 * The fences as a holder uses them, by kind: each guards one text at a place. `between` runs after the check and
 * before the write, where a fence has such a moment.
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
  async directory(root) {
    const fence = new DirectoryFence(root);
    return {
      writeText: (token, text) => fence.write(token, { name: "report", content: text }),
      close: async () => undefined,
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
};
