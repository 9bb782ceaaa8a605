// A program that closes its client in the middle of something, and then must end by itself.
import { setTimeout as sleep } from "node:timers/promises";

const { library, urls, options, situation } = JSON.parse(process.argv[2]);
const { open } = await import(library);
const leases = await open(...urls, options);
const outcomes = [];
const note = (call) =>
  call.then(
    () => outcomes.push("done"),
    (error) => outcomes.push(error.code),
  );

const situations = {
  async idle() {},
  async holding() {
    for (let index = 0; index < 50; index++) await leases.acquire(`held/${index}`);
  },
  async waiting() {
    await leases.acquire("mine");
    for (let index = 0; index < 20; index++) note(leases.acquire("mine", { wait: "1m" }));
    note(leases.acquire("theirs", { wait: "1m" }));
    note(leases.lead("theirs", async () => undefined));
    await sleep(100);
  },
  async attempting() {
    for (let index = 0; index < 20; index++) note(leases.acquire(`under way/${index}`));
    note(leases.holder("theirs"));
    note(leases.list());
  },
};
await situations[situation]();
process.send("ready");
process.once("message", async () => {
  const from = performance.now();
  await leases.close();
  const tookMs = performance.now() - from;
  // Handles closed in this turn of the event loop are gone in the next.
  await new Promise(setImmediate);
  const handles = process.getActiveResourcesInfo().filter((name) => !/^(Pipe|Immediate)/.test(name));
  process.send({ tookMs, handles, outcomes });
  process.disconnect();
});
