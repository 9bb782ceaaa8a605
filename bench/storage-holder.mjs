/**
 * A participant of `bench/storage-beside.mjs` in a process of its own: `storage-holder.mjs URL NAME`. Takes the lease and says so; then renews it
 * as often as it is told over its channel, until it is killed.
 */
import { library } from "./storage-library.mjs";

const { open } = await library();
const [url, name] = process.argv.slice(2);

// Before it opens: there may be nobody to answer any more.
process.on("disconnect", () => process.exit());
const leases = await open(url, { timeout: "30s" });
const lease = await leases.acquire(name, { wait: "1h", autoRenew: false });
process.on("message", async ({ renew }) => {
  for (let count = 0; count < renew; count++) await lease.renew();
  process.send({ renewed: renew });
});
process.send({ held: true });
