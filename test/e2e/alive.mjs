// Waits in each way while nothing else keeps the process alive. Afterwards the process has open leases and
// nothing to do.
const { library, urls, options, ttl, closes } = JSON.parse(process.argv[2]);
const { open } = await import(library);

const say = (...words) => process.stdout.write(`${words.join(" ")}\n`);
/** A timer that doesn't keep the process alive. */
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref());

const leases = await open(...urls, options);
say("opened");
const others = await open(...urls, options);

const first = await others.acquire("waited-for", { ttl, autoRenew: false });
const next = await leases.acquire("waited-for");
say("waited", next.token > first.token);
await next.release();

const held = await leases.acquire("held", { maxHold: "700ms" });
await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
say("held", held.signal.reason.reason);

const watched = later(300).then(() => others.acquire("watched"));
for await (const { resource } of leases.watch("watched")) {
  say("watched", resource);
  break;
}
await (await watched).release();

await leases.lead("led", () => later(300));
say("led");
if (closes) await Promise.all([leases.close(), others.close()]);
