import { LeaseholdError, type LeaseLostError } from "../../lease/errors.js";
import { assertAttachable } from "../../lease/handle.js";
import type { JsonValue, Lease, Leases } from "../../lease/types.js";
import { withLeasesInTurn } from "../common/connection.js";
import { CommandFailure } from "../common/failure.js";
import { exitCode } from "../common/exit-codes.js";
import { aborted, Interrupt, ifAborted } from "../common/interrupt.js";
import { printable } from "../output/cells.js";
import { toJson } from "../output/json.js";
import { shortTime } from "../output/present.js";
import { printLine } from "../output/print.js";
import { SignalRelay } from "../run/signal-relay.js";
import { type FormOptions, type Wanted, wantedOf } from "../common/wanted.js";
import {
  type OutputFormat,
  type Settings,
  type SharedOptions,
  settingsOf,
  ttlOf,
  dataOf,
} from "../common/settings.js";

export interface HoldOptions extends SharedOptions, FormOptions {
  readonly ttl?: string;
  readonly wait?: string;
  readonly try?: boolean;
  readonly data?: string;
  readonly attach?: string;
  readonly detach?: boolean;
}

/** The requested lease, as options of the library. */
interface Term {
  readonly wait: number;
  readonly signal: AbortSignal;
  readonly ttl?: number;
  readonly data?: JsonValue;
}

/** Timeout for confirming a release. */
const CONFIRM_TIMEOUT_MS = 2_000;

/**
 * `leasehold hold NAME`, or `hold --attach HANDLE`: exit code 0 if it was interrupted, or was asked to
 * release the lease and did so in time; 69 if the release could not be confirmed; 76 if the lease was lost.
 */
export async function hold(name: string | undefined, options: HoldOptions): Promise<number> {
  const wanted = wantedOf(name, options.attach, options);
  const settings = settingsOf(options);
  const term = { ...ttlOf(options.ttl), ...dataOf(options.data) };
  if (options.detach === true) return await holdDetached(wanted, settings, options, term);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const holding = async (leases: Leases, wait: number): Promise<number> => {
    const lease = await take(leases, wanted, { signal, wait, ...term });
    const { resource } = lease;
    announce(settings.output, { type: "held", resource, token: lease.token }, `held, token ${lease.token}`);
    const why = await untilAsked(lease, signal);
    if (lease.remaining() <= 0)
      throw new CommandFailure("lost", (lease.signal.reason as LeaseLostError).message);
    await release(leases, lease, why);
    announce(settings.output, { type: "released", resource, why }, `released: ${why}`);
    return exitCode("ok");
  };
  return await withLeasesInTurn(settings, options, signal, holding).catch(
    ifAborted(signal, () => exitCode("ok")),
  );
}

/** @throws CommandFailure unless the release is confirmed: the library's release is best effort. */
async function release(leases: Leases, lease: Lease, why: string): Promise<void> {
  const { resource } = lease;
  const endMs = performance.now() + lease.remaining();
  await lease.release();
  const doubt = await doubtOf(leases, lease);
  if (doubt === undefined) return;
  const leftMs = endMs - performance.now();
  const end =
    leftMs > 0 ? `the lease ends by itself in ${shortTime(leftMs)}` : "the lease has ended by itself since";
  throw new CommandFailure(
    "unavailable",
    `${why}; the release of ${resource} could not be confirmed (${doubt}): unless it arrives, ${end}`,
  );
}

/** Why the release is unconfirmed; `undefined` if it is confirmed. */
async function doubtOf(leases: Leases, { resource, token }: Lease): Promise<string | undefined> {
  try {
    const hint = await leases.holder(resource, { timeout: CONFIRM_TIMEOUT_MS });
    if (hint.state === "unknown") return "too few answered";
    return hint.state === "held" && hint.token === token ? "it is still seen as held" : undefined;
  } catch (error) {
    if (error instanceof LeaseholdError) return error.message;
    throw error;
  }
}

/**
 * `hold --detach`: exit code 0 means that the handle was printed. After an earlier interrupt it is 128 + n.
 */
async function holdDetached(
  wanted: Wanted,
  settings: Settings,
  options: HoldOptions,
  term: Omit<Term, "wait" | "signal">,
): Promise<number> {
  using signals = new SignalRelay();
  const signal = signals.withoutCommand;
  const detaching = async (leases: Leases, wait: number): Promise<number> => {
    assertAttachable(leases.guarantees);
    const { handle, ...ticket } = await (await take(leases, wanted, { signal, wait, ...term })).detach();
    if (handle === undefined)
      throw new CommandFailure(
        "unavailable",
        "no answer in time: there is no handle, and the lease runs out",
      );
    announce(settings.output, { type: "detached", ...ticket, handle }, handle);
    return exitCode("ok");
  };
  return await withLeasesInTurn(settings, options, signal, detaching).catch(signals.caught);
}

function take(leases: Leases, wanted: Wanted, { wait, ...term }: Term): Promise<Lease> {
  if ("handle" in wanted) return leases.attach(wanted.handle, term);
  return leases.acquire(wanted.resource, { wait, ...term, ...wanted.form });
}

/** Resolves with the reason when the lease is lost or should be released. */
export async function untilAsked(lease: Lease, signal: AbortSignal): Promise<string> {
  const { releaseRequested } = lease;
  await aborted(AbortSignal.any([lease.signal, releaseRequested, signal]));
  const { reason } = releaseRequested as AbortSignal & { reason: unknown };
  return reason instanceof LeaseholdError ? reason.message : "interrupted";
}

/** Prints a line for humans or an object for programs. */
export function announce(output: OutputFormat, object: object, line: string): void {
  printLine(output === "table" ? printable(line) : toJson(object));
}
