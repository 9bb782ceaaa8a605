import { LeaseholdError } from "leasehold/inner/lease/errors.js";
import { resource } from "./leases.js";
import type { ProviderStage } from "../stage/stage.js";

const timeoutDelays = 3;

/** Breaks the leases of other processes, or requests their release, while stores fail. */
export async function meddle(stage: ProviderStage): Promise<void> {
  const { counters, party, plan, provider, random } = stage;
  if (plan.meddleEveryMs === Infinity) return;
  const { inspection } = provider;
  const timeoutMs = timeoutDelays * plan.delayMs;
  for (;;) {
    await party.sleep(random.exponential(plan.meddleEveryMs));
    const breaks = random.chance(0.5);
    try {
      const asked = breaks
        ? inspection.breakLease(resource, timeoutMs)
        : inspection.requestRelease(resource, timeoutMs);
      const { done, token } = await party.alive(asked);
      if (!done || token === undefined) continue;
      counters[breaks ? "broken" : "releaseRequests"] += 1;
      stage.log(`${party.writer} ${breaks ? "breaks" : "requests the release of"} ${token}`);
      if (breaks) stage.tell((observer) => observer.broken?.(token));
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
    }
  }
}
