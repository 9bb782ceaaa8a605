/**
 * A process that is in a group until it is killed. Its arguments: how the group is stored, the address, the
 * group, its name, the TTL.
 */
import { writeSync } from "node:fs";

const { open } = await import(`${process.env.LEASEHOLD_DIST}/index.js`);
const { joinCoreGroup, joinGroup } = await import(`${process.env.LEASEHOLD_DIST}/entry/membership.js`);

const [kind, address, group, name, ttl] = process.argv.slice(2);
const options = { name, ttl, data: { pid: process.pid }, wait: "30s" };
await (kind === "keys"
  ? joinCoreGroup(address, group, options)
  : joinGroup(await open(address), group, options));
writeSync(1, "in\n");
