import type { CoreHost } from "../host/host.js";

/** Upper bound of a leadership transfer before a server stops, ms. */
const transferMsMax = 1_000;
const transferLookMs = 10;

/** Transfers leadership to the follower with the longest log, which saves waiting for an election timeout. */
export async function handOver(host: CoreHost): Promise<void> {
  const { role, followers, membership } = host.status();
  if (role !== "leader") return;
  const fit = followers.filter(({ id, active }) => active && membership.voters.includes(id));
  const [next] = fit.sort((a, b) => b.matchIndex - a.matchIndex);
  if (next === undefined) return;
  host.step({ kind: "transfer", to: next.id });
  const endMs = performance.now() + transferMsMax;
  while (host.status().role === "leader" && performance.now() < endMs)
    await new Promise((resolve) => setTimeout(resolve, transferLookMs));
}
