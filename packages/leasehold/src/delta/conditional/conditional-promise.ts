import type { LeaseProtocol, ProtocolEnvironment } from "../lease-protocol.js";

/** The guarantees of conditional leases, with the numbers of this farm. */
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
        ? "The store does not forget. A store that is always empty after a restart has to wait; one that was emptied otherwise, or restored to an earlier state, is not detected."
        : `At most ${others} of the ${size} stores forget before they have recovered. A store that comes back empty is detected, and has to wait; one that was restored to an earlier state is not.`,
      "Records are written by this library alone; damage is detected by their checksum.",
    ],
  };
}
