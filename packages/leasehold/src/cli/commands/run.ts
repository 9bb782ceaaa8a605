import { withLeasesInTurn } from "../common/connection.js";
import { ownCommandBytes } from "../common/command-bytes.js";
import { guardStarter } from "../run/guard-starter.js";
import { runUnderLease } from "../run/run-under-lease.js";
import { SignalRelay } from "../run/signal-relay.js";
import { printError } from "../output/print.js";
import { type FormOptions, wantedOf } from "../common/wanted.js";
import { refuseStrayWords } from "./stray-words.js";
import { type SharedOptions, settingsOf, ttlOf } from "../common/settings.js";

export interface RunOptions extends SharedOptions, FormOptions {
  readonly ttl?: string;
  readonly wait?: string;
  readonly try?: boolean;
  readonly killAfter?: string;
  readonly yield?: boolean;
  readonly attach?: string;
  readonly conflictExitCode: number;
  readonly lostExitCode: number;
}

/**
 * `leasehold run NAME -- COMMAND ARGS`, or `leasehold run --attach HANDLE -- COMMAND ARGS`.
 *
 * @param first the name, or with `--attach` the command.
 */
export async function run(first: string, others: readonly string[], options: RunOptions): Promise<number> {
  const { attach } = options;
  const words = attach === undefined ? others : [first, ...others];
  refuseStrayWords(attach === undefined ? "run NAME" : "run --attach HANDLE", words);
  const [command = "", ...args] = words;
  const term = ttlOf(options.ttl);
  const { killAfter, conflictExitCode, lostExitCode } = options;
  const request = {
    ...wantedOf(attach === undefined ? first : undefined, attach, options),
    command,
    args,
    bytes: ownCommandBytes(words),
    conflictExitCode,
    lostExitCode,
    yields: options.yield === true,
    print: printError,
    ...term,
    ...(killAfter !== undefined && { killAfter }),
  };
  const settings = settingsOf(options);
  using signals = new SignalRelay();
  using guards = guardStarter();
  const running = withLeasesInTurn(settings, options, signals.withoutCommand, (leases, wait) =>
    runUnderLease(leases, { ...request, guards, wait }, signals),
  );
  return await running.catch(signals.caught);
}
