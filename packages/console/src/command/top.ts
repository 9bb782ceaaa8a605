import {
  Interrupt,
  type SharedOptions,
  exitCode,
  groundStatus,
  ifAborted,
  settingsOf,
  usageError,
  withLeases,
} from "leasehold/cli";
import { withoutSecrets } from "../record/endpoints.js";
import { runTop } from "../top/top.js";

/** Shows what is held on the terminal. */
export async function showTop(options: SharedOptions): Promise<number> {
  if (process.stdout.isTTY !== true || process.stdin.isTTY !== true)
    throw usageError("top needs a terminal; leasehold ls and leasehold watch print for programs");
  const settings = settingsOf(options);
  const endpoints = settings.endpoints.map(withoutSecrets).join(", ");
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const work = withLeases(
    settings,
    (leases) => runTop({ leases, askGround: () => groundStatus(settings, leases), endpoints, signal }),
    signal,
  );
  await work.catch(ifAborted(signal, () => undefined));
  return exitCode("ok");
}
