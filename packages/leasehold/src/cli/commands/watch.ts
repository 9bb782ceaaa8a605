import type { Change, Leases } from "../../lease/types.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import { Interrupt, ifAborted } from "../common/interrupt.js";
import { type Paint, paintFor } from "../output/ansi.js";
import { printable } from "../output/cells.js";
import { toJson } from "../output/json.js";
import { shortTime } from "../output/present.js";
import { printLine } from "../output/print.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { leaseView } from "./lease-view.js";

export interface WatchCommandOptions extends SharedOptions {
  /** The prefix is one name. */
  readonly exact?: boolean;
}

/** `leasehold watch [PREFIX]`: exit code 0 when it is interrupted or its reader has gone. */
export async function watch(prefix: string, options: WatchCommandOptions): Promise<number> {
  const settings = settingsOf(options);
  const paint = paintFor(process.stdout.isTTY === true, process.env);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const show = async (leases: Leases): Promise<void> => {
    for await (const change of leases.watch(prefix, { signal, exact: options.exact === true })) {
      const at = new Date();
      const line =
        settings.output === "table" ? changeLine(change, at, paint) : toJson(changeView(change, at));
      if (!printLine(line)) return;
    }
  };
  await withLeases(settings, show, signal).catch(ifAborted(signal, () => undefined));
  return exitCode("ok");
}

/** One change for `-o json` and `-o ndjson`: as the stream is endless, both write one object per line. */
export function changeView(change: Change, at: Date): object {
  return { at: at.toISOString(), ...leaseView(change) };
}

export function changeLine(change: Change, at: Date, paint: Paint): string {
  const { resource, state, holder, token, remainingMs, label } = change;
  const time = paint("dim", at.toTimeString().slice(0, 8));
  const name = paint("bold", printable(resource));
  const tokenText = paint("cyan", `token ${token}`);
  if (state === "free") return `${time}  ${paint("dim", "free")}  ${name}  ${tokenText} ended`;
  const who = label === undefined ? `${holder}` : `${holder} (${label})`;
  const left = remainingMs === undefined ? "" : `, at most ${shortTime(remainingMs)} left unless renewed`;
  return `${time}  ${paint("green", "held")}  ${name}  ${tokenText}, ${printable(who)}${left}`;
}
