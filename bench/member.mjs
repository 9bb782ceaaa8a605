// One member of the cluster that is measured, in a process of its own. It tells its parent how it is when asked.
import { startMember } from "leasehold";

const options = JSON.parse(process.argv[2]);
const member = await startMember(options);
process.on("message", (asked) => {
  const { user, system } = process.cpuUsage();
  if (asked === "heap") globalThis.gc?.();
  process.send({ cpuUs: user + system, heapBytes: process.memoryUsage().heapUsed });
});
process.on("disconnect", () => process.exit());
process.send("listening");
await member.ready();
process.send("ready");
