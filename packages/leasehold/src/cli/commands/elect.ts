import type { LeaseLostError } from "../../lease/errors.js";
import type { JsonValue, Lease, Leases } from "../../lease/types.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import { Interrupt, ifAborted } from "../common/interrupt.js";
import { ownCommandBytes } from "../common/command-bytes.js";
import { runUnderLease } from "../run/run-under-lease.js";
import { SignalRelay } from "../run/signal-relay.js";
import { printError } from "../output/print.js";
import { type OutputFormat, type Settings, settingsOf, ttlOf, dataOf } from "../common/settings.js";
import { type HoldOptions, announce, untilAsked } from "./hold.js";
import { refuseStrayWords } from "./stray-words.js";

/** No exit code of a command: the lease was lost. */
const LOST = -1;

/** `leasehold elect NAME [-- COMMAND]`: runs until it is interrupted or the command ends by itself. */
export async function elect(
  resource: string,
  words: readonly string[],
  options: HoldOptions,
): Promise<number> {
  if (words.length > 0) refuseStrayWords("elect NAME", words);
  const settings = settingsOf(options);
  const term = { ...ttlOf(options.ttl), ...dataOf(options.data) };
  return words.length > 0
    ? await electToRun(settings, resource, words, term)
    : await electToSay(settings, resource, term);
}

/** The options of each term. */
interface Term {
  readonly ttl?: number;
  readonly data?: JsonValue;
}

/** Runs the command again in each term, guarded as by `run`. */
async function electToRun(
  settings: Settings,
  resource: string,
  words: readonly string[],
  term: Term,
): Promise<number> {
  const [command = "", ...args] = words;
  const request = {
    resource,
    command,
    args,
    bytes: ownCommandBytes(words),
    wait: Infinity,
    conflictExitCode: exitCode("conflict"),
    lostExitCode: LOST,
    yields: true,
    print: printError,
    ...term,
  };
  using signals = new SignalRelay();
  const terms = async (leases: Leases): Promise<number> => {
    for (;;) {
      const code = await runUnderLease(leases, request, signals);
      if (code !== LOST) return code;
    }
  };
  return await withLeases(settings, terms, signals.withoutCommand).catch(signals.caught);
}

async function electToSay(settings: Settings, resource: string, term: Term): Promise<number> {
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const terms = async (leases: Leases): Promise<void> => {
    while (!signal.aborted)
      await leases.lead(resource, (lease) => serve(lease, settings.output, signal), { signal, ...term });
  };
  await withLeases(settings, terms, signal).catch(ifAborted(signal, () => undefined));
  return exitCode("ok");
}

/** One term, until its loss, an interrupt, or a request for the lease. */
async function serve(lease: Lease, output: OutputFormat, signal: AbortSignal): Promise<void> {
  const { resource, token } = lease;
  announce(output, { type: "leading", resource, token }, `leading, token ${token}`);
  const asked = await untilAsked(lease, signal);
  const isLost = lease.remaining() <= 0;
  const why = isLost ? (lease.signal.reason as LeaseLostError).message : asked;
  announce(
    output,
    { type: isLost ? "lost" : "stepped-down", resource, token, why },
    `no longer leading: ${why}`,
  );
}
