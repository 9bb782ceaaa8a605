import pg from "pg";
import { PostgresFence } from "@leasehold/fence/postgres";

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
};
