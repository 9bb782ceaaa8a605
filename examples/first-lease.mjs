// A first lease. Members have to run: `npm start` in another terminal starts three of them on this machine.
import { open } from "leasehold";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400"); // one address is enough
const lease = await leases.acquire("examples/first", { wait: "30s" }); // waits; then renews itself
try {
  lease.assertHeld(500); // throws unless it is certainly ours for 500 ms more
  console.log(`${lease.resource} is ours, token ${lease.token}, ${Math.round(lease.remaining())} ms left`);
} finally {
  await lease.release(); // the next waiter gets it at once
  await leases.close();
}
