import type { LeaseProtocol, ProtocolEnvironment } from "../lease-protocol.js";

/** What conditional leases promise, with this farm's numbers. */
export function conditionalPromise({ farm, settings }: ProtocolEnvironment): LeaseProtocol["promise"] {
  const { size, majority } = farm;
  const others = size - majority;
  return {
    exclusion:
      "At no instant do two participants both find a lease on one resource held, if the first three assumptions hold. How long a store takes does not matter.",
    token:
      "Each tenure's token is greater than every earlier one's, if the first and the third assumption hold; no clock matters.",
    progress: `A free resource is acquired, and a crashed holder replaced, as long as ${majority} of the ${size} stores answer within ${settings.delayMs} ms.`,
    assumptions: [
      "Every store compares and sets in one step, and keeps what it has acknowledged.",
      `Every steady clock runs within ${settings.clockRateError * 100} % of real time while its machine is awake, and the system's clock is not set back while it sleeps.`,
      size === 1
        ? "The store does not forget. One of a kind that is empty after a restart is waited for; one that was emptied otherwise, or put back to an earlier state, is not recognised."
        : `At most ${others} of the ${size} stores forget before they have recovered. One that comes back empty is recognised, and waited for; one that was put back to an earlier state is not.`,
      "Records are written by this library alone; damage is recognised by their checksum.",
    ],
  };
}
