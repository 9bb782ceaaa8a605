// The list of live workers: each worker holds a lease under its own name, and any client may watch the held
// leases.
//
//   node who-is-alive.mjs w1 & node who-is-alive.mjs w2 &        two workers
//   node who-is-alive.mjs                                        who is there, and who comes and goes
import { once } from "node:events";
import { hostname } from "node:os";
import { open } from "leasehold";

const [name] = process.argv.slice(2);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());
const { signal } = stop;

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400");
if (name === undefined) {
  // First the present workers, then each change. `leases.list("workers/")` returns only the former. Among
  // members the data may arrive a moment after the lease; the worker is then reported again.
  for await (const { resource, state, data } of leases.watch("workers/", { signal }))
    console.log(state === "held" ? `${resource} is alive: ${JSON.stringify(data)}` : `${resource} is gone`);
} else {
  // Registered as long as this process renews, and again after a loss. A second worker with this name waits.
  const data = { host: hostname(), port: Number(process.env.PORT ?? 8080) }; // visible to others
  const registered = leases.lead(`workers/${name}`, stay, { signal, data });
  await once(signal, "abort"); // its work
  await registered;
}
await leases.close();

async function stay(lease) {
  console.log(`${lease.resource} is registered`);
  if (!lease.signal.aborted) await once(lease.signal, "abort");
}
