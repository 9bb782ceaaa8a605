// One member of the measured cluster, in a process of its own. It reports its state to its parent on request.
import { startMember } from "leasehold";

const options = JSON.parse(process.argv[2]);
const member = await startMember(options);
process.on("message", (asked) => {
  const { user, system } = process.cpuUsage();
  if (asked === "heap") globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  const { counters } = member.status();
  process.send({ cpuUs: user + system, heapBytes: heapUsed, rssBytes: rss, counters });
});
process.on("disconnect", () => process.exit());
process.send("listening");
await member.ready();
process.send("ready");
