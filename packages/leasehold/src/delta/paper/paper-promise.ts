import type { LeaseProtocol, ProtocolEnvironment } from "../lease-protocol.js";

/** The guarantees of the paper's leases, with the numbers of this farm. */
export function paperPromise({ farm, settings }: ProtocolEnvironment): LeaseProtocol["promise"] {
  const { size, majority } = farm;
  const { delayMs } = settings;
  return {
    exclusion: `At no instant do two participants both find a lease on one resource held, once every operation takes less than ${delayMs} ms. Before that two can: the protected resource must check the token.`,
    token: `No two tenures have the same token, and each is greater than every earlier one's, once every operation takes less than ${delayMs} ms.`,
    progress: `A resource is acquired by one of its contenders once ${majority} of the ${size} stores answer within ${delayMs} ms; it always takes a wait of Δ + 6δ, as a store that cannot compare and set does not prove that a resource is free.`,
    assumptions: [
      `An operation on a majority of the stores takes less than δ = ${delayMs} ms, and all participants have the same δ. A holder whose operation took longer has lost.`,
      `Every steady clock runs within ${settings.clockRateError * 100} % of real time while its machine is awake.`,
      "Every writer has a slot of its own in each store, and its writes reach it in the order in which they were sent.",
      `At most ${size - majority} of the ${size} stores forget before they have recovered.`,
    ],
  };
}
