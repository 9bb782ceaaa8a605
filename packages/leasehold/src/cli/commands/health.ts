import { LeaseholdError } from "../../lease/errors.js";
import { parseAddress } from "../../runtime/address.js";
import { exitCode } from "../common/exit-codes.js";
import { type SharedOptions, settingsOf } from "../common/settings.js";
import { printLine } from "../output/print.js";

export interface HealthOptions extends SharedOptions {
  readonly ready?: boolean;
}

/**
 * `leasehold health`: queries a server's health at its `--metrics-address`, for containers whose images have
 * no other HTTP client. Exit code 69 unless the server is alive or, with `--ready`, ready.
 */
export async function health(address: string, options: HealthOptions): Promise<number> {
  const { timeoutMs } = settingsOf(options);
  parseAddress(address);
  const url = `http://${address}/${options.ready === true ? "readyz?verbose" : "livez"}`;
  const { ok, text } = await answerOf(url, timeoutMs);
  printLine(text.trimEnd());
  return exitCode(ok ? "ok" : "unavailable");
}

async function answerOf(url: string, timeoutMs: number): Promise<{ ok: boolean; text: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    return { ok: answer.ok, text: await answer.text() };
  } catch (cause) {
    throw new LeaseholdError("UNREACHABLE", `${url} does not answer`, { cause });
  }
}
