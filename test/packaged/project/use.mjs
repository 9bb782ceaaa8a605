// The uses of the package that every tool must support: acquires a lease in memory and one on three members
// in this process, opens a ground whose package is not installed, and lets a thread renew. Prints the outcome
// of each.
import { createServer } from "node:net";
import { LeaseholdError, open, startMember } from "leasehold";

/** Ports that were free a moment ago. */
async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** "held" if a lease was acquired and released, or the error's code. */
async function outcomeOf(url, options) {
  try {
    const leases = await open(url, options);
    const lease = await leases.acquire("packaged");
    lease.assertHeld(1);
    await lease.release();
    await leases.close();
    return "held";
  } catch (error) {
    return error instanceof LeaseholdError ? error.code : String(error);
  }
}

export async function use() {
  const ids = ["a", "b", "c"];
  const ports = await freePorts(ids.length);
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  const members = Object.fromEntries(ids.map((id, index) => [id, addresses[index]]));
  const settings = { members, ttlMax: "1s", maxClockSkew: "20ms", rpcTimeout: "150ms" };
  const started = await Promise.all(ids.map((id) => startMember({ id, ...settings })));
  const url = `flease://${addresses[0]}`;
  const outcome = {
    memory: await outcomeOf("memory:packaged"),
    stores: await outcomeOf("delta+memory:packaged"),
    flease: await outcomeOf(url, {}),
    thread: await outcomeOf(url, { renewInWorker: "10s" }),
    redis: await outcomeOf("delta+redis://127.0.0.1:1", {}),
    core: await outcomeOf("core://127.0.0.1:1", {}),
  };
  await Promise.all(started.map((member) => member.close()));
  return outcome;
}
