/**
 * A participant of `bench/stores.mjs` in a process of its own: `stores-holder.mjs URL NAME`. Takes the lease and says so; then does as it
 * is told over its channel: `renew` so many times, telling what that cost, or nothing, until it is killed.
 */
import { readFileSync } from "node:fs";
import { library } from "./stores-library.mjs";

const { open } = await library();
const [url, name] = process.argv.slice(2);

/** Bytes and calls of `read` and `write` in all their forms, as Linux counts them. */
function io() {
  const text = readFileSync("/proc/self/io", "utf8");
  return Object.fromEntries(
    [...text.matchAll(/^(\w+): (\d+)$/gm)].map(([, key, value]) => [key, Number(value)]),
  );
}

const leases = await open(url, { timeout: "30s" });
const lease = await leases.acquire(name, { wait: "1h", autoRenew: false });
process.on("message", async ({ renew }) => {
  await lease.renew();
  io();
  const [before, looked] = [io(), io()];
  for (let count = 0; count < renew; count++) await lease.renew();
  const after = io();
  // What the looks themselves have read and called.
  const own = Object.fromEntries(Object.keys(before).map((key) => [key, looked[key] - before[key]]));
  const each = (key) => (after[key] - looked[key] - own[key]) / renew;
  process.send({
    reads: each("syscr"),
    readBytes: each("rchar"),
    writes: each("syscw"),
    writtenBytes: each("wchar"),
  });
});
process.send({ held: true });
