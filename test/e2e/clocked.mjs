// A client that takes a lease again and again, keeps it as long as it can, and reports each change to its
// parent.
import { setTimeout as sleep } from "node:timers/promises";

const { library, urls, name, resource = name } = JSON.parse(process.argv[2]);
const { open } = await import(library);
const leases = await open(...urls, { name });
const tell = (news) => process.connected && process.send(news);
tell({ type: "started" });
process.on("disconnect", () => process.exit());

for (;;) {
  let lease;
  try {
    lease = await leases.acquire(resource, { wait: 1_000 });
  } catch (error) {
    tell({ type: "failed", code: error.code, message: error.message });
    await sleep(100);
    continue;
  }
  tell({ type: "acquired", token: lease.token.toString() });
  while (lease.remaining() > 0) await sleep(10);
  const reason = lease.signal.reason;
  tell({ type: "lost", code: reason.code, reason: reason.reason });
  await lease.release();
}
