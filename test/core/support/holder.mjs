/**
 * A process that takes one lease of a core and repeatedly reports, as a line of JSON, that it holds the lease
 * and the remaining time. Its arguments: the address, the resource, the TTL.
 */
import { writeSync } from "node:fs";

const { open } = await import(`${process.env.LEASEHOLD_DIST}/index.js`);

const lookEveryMs = 10;

const [address, resource, ttl] = process.argv.slice(2);
const leases = await open(address);
const lease = await leases.acquire(resource, { ttl, wait: "1m" });
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
say({ token: lease.token.toString(), self: leases.self });
setInterval(() => say({ remainingMs: lease.remaining(), atMs: Date.now() }), lookEveryMs);
