// The first leases that a runtime acquires: in memory, on three directories, and on three members over TCP.
// Each is acquired, refused to another user, released and acquired by the other, whose token is greater.
// Arguments: three directories, and three addresses for the members.
import process from "node:process";
import { open, startMember } from "leasehold";

const [directories, addresses] = process.argv.slice(2).map((word) => word.split(","));
const ids = ["a", "b", "c"];

async function passesOn(...urls) {
  const [first, second] = [await open(...urls), await open(...urls)];
  const lease = await first.acquire("first");
  lease.assertHeld(1);
  const isRefused = (await second.tryAcquire("first")) === undefined;
  await lease.release();
  const next = await second.acquire("first", { wait: "60s" });
  const isGreater = next.token > lease.token;
  await next.release();
  await first.close();
  await second.close();
  return isRefused && isGreater ? "passed on" : `refused: ${isRefused}, a greater token: ${isGreater}`;
}

const outcome = {
  memory: await passesOn("memory:first"),
  directories: await passesOn(`delta+file://${directories.join(",")}`),
};
const members = Object.fromEntries(ids.map((id, index) => [id, addresses[index]]));
const started = await Promise.all(ids.map((id) => startMember({ id, members, ttlMax: "6s" })));
outcome.members = await passesOn(...addresses.map((address) => `flease://${address}`));
await Promise.all(started.map((member) => member.close()));
process.stdout.write(`${JSON.stringify(outcome)}\n`);
