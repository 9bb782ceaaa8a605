import { writeSync } from "node:fs";
import { openBlockStore } from "../../packages/leasehold/dist/stores/block/open.js";
import { openDirectoryStore } from "../../packages/leasehold/dist/stores/directory/open.js";

/**
 * A process that tests kill: `writer.mjs URL count|forever`. It increments the register `counter`, and writes
 * each number to standard output, synchronously, once the store has confirmed it.
 */
const [url, limit] = process.argv.slice(2);
const address = new URL(url);
const register = "lease/counter";
const filler = "x".repeat(300);

const open = address.protocol === "block:" ? openBlockStore : openDirectoryStore;
const store = await open(address, { writer: `writer ${process.pid}` });
const ask = async (request) => {
  const answer = await store.perform(request);
  if (answer.kind === "failed") throw answer.error;
  return answer;
};

const most = limit === "forever" ? Infinity : Number(limit);
for (let done = 0; done < most;) {
  const { id, cells } = await ask({ op: "read", register });
  const numbers = cells.map((cell) => Number(new TextDecoder().decode(cell).split(" ")[0]));
  const next = Math.max(0, ...numbers) + 1;
  const content = new TextEncoder().encode(`${next} ${process.pid} ${done} ${filler}`);
  const request = store.traits.kind === "atomic" ? { op: "replace", id, expected: cells[0] } : { op: "put" };
  const { kind } = await ask({ ...request, register, next: content });
  if (kind !== "written") continue;
  done++;
  writeSync(1, `${next}\n`);
}
await store.close();
