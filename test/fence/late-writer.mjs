import { open } from "leasehold";
import { openers } from "./openers.mjs";

/**
 * A holder in a process of its own: `late-writer.mjs LEASES KIND PLACE TEXT WHERE`. It acquires the lease
 * "guarded", checks that it is held, and writes TEXT with its token to the fence of KIND at PLACE. WHERE says
 * when it stops: `before` the write, `between` check and write (if the fence has such a moment), or `never`.
 */
const [leasesUrl, kind, place, text, where] = process.argv.slice(2);

const send = (message) => new Promise((resolve) => process.send(message, resolve));
// Without an await, for fences whose write has none. The message is written at once where the channel is free.
const stopHere = () => {
  process.send({ stopped: where });
  process.kill(process.pid, "SIGSTOP");
};

const leases = await open(leasesUrl);
const lease = await leases.acquire("guarded", { ttl: "2s" });
const fence = await openers[kind](place);
lease.assertHeld(100);
if (where === "before") stopHere();
try {
  await fence.writeText(lease.token, text, where === "between" ? stopHere : undefined);
  await send({ token: String(lease.token), outcome: "written" });
} catch (error) {
  await send({ token: String(lease.token), outcome: String(error.code ?? error) });
}
await fence.close();
await leases.close();
process.disconnect();
