/**
 * A participant of `bench/storage-beside.mjs` in a process of its own: `storage-holder.mjs URL NAME`.
 * Acquires the lease and reports it. It then renews the lease as often as its parent requests over its
 * channel, until it is killed.
 */
import { library } from "./storage-library.mjs";

const { open } = await library();
const [url, name] = process.argv.slice(2);

// Register before opening: the parent may already have gone.
process.on("disconnect", () => process.exit());
const leases = await open(url, { timeout: "30s" });
const lease = await leases.acquire(name, { wait: "1h", autoRenew: false });
process.on("message", async ({ renew }) => {
  for (let count = 0; count < renew; count++) await lease.renew();
  process.send({ renewed: renew });
});
process.send({ held: true });
