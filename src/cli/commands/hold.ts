import { LeaseholdError, type LeaseLostError } from "../../lease/errors.js";
import type { Lease, Leases } from "../../lease/types.js";
import { withLeasesInTurn } from "../common/connection.js";
import { CommandFailure } from "../common/failure.js";
import { exitCode } from "../common/exit-codes.js";
import { aborted, Interrupt, ifAborted } from "../common/interrupt.js";
import { printable } from "../output/cells.js";
import { toJson } from "../output/present.js";
import { sayLine } from "../output/say.js";
import { type OutputFormat, type SharedOptions, settingsOf, ttlOf, dataOf } from "../common/settings.js";

export interface HoldOptions extends SharedOptions {
  readonly ttl?: string;
  readonly wait?: string;
  readonly try?: boolean;
  readonly data?: string;
}

/**
 * `leasehold hold NAME`: 0 when it was interrupted, or asked to release and did so in time; 76 when the lease
 * was lost.
 */
export async function hold(resource: string, options: HoldOptions): Promise<number> {
  const settings = settingsOf(options);
  const term = { ...ttlOf(options.ttl), ...dataOf(options.data) };
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const holding = async (leases: Leases, wait: number): Promise<number> => {
    const lease = await leases.acquire(resource, { signal, wait, ...term });
    tell(settings.output, { type: "held", resource, token: lease.token }, `held, token ${lease.token}`);
    const why = await untilAsked(lease, signal);
    if (lease.remaining() <= 0)
      throw new CommandFailure("lost", (lease.signal.reason as LeaseLostError).message);
    await lease.release();
    tell(settings.output, { type: "released", resource, why }, `released: ${why}`);
    return exitCode("ok");
  };
  return await withLeasesInTurn(settings, options, signal, holding).catch(
    ifAborted(signal, () => exitCode("ok")),
  );
}

/** Resolves when the lease is lost, or there is a reason to give it back; says which. */
export async function untilAsked(lease: Lease, signal: AbortSignal): Promise<string> {
  const { releaseRequested } = lease;
  await aborted(AbortSignal.any([lease.signal, releaseRequested, signal]));
  const { reason } = releaseRequested as AbortSignal & { reason: unknown };
  return reason instanceof LeaseholdError ? reason.message : "interrupted";
}

/** One line for a person or one object for a program. */
export function tell(output: OutputFormat, object: object, line: string): void {
  sayLine(output === "table" ? printable(line) : toJson(object));
}
