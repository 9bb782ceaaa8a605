// A first lease. Members have to run: `npm start` in another terminal starts three of them on this machine.
import { open } from "leasehold";

const leases = await open(process.env.LEASEHOLD_MEMBER ?? "flease://127.0.0.1:7400"); // it knows the others
const lease = await leases.acquire("examples/first", { wait: "30s" }); // waits its turn; renews itself from now on
try {
  lease.assertHeld(500); // throws unless it is ours for certain, and for at least 500 ms more
  console.log(`${lease.resource} is ours, token ${lease.token}, ${Math.round(lease.remaining())} ms left`);
} finally {
  await lease.release(); // the next in line has it at once
  await leases.close();
}
