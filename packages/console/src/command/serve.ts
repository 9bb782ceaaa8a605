import {
  Interrupt,
  type SharedOptions,
  exitCode,
  ifAborted,
  printLine,
  settingsOf,
  withLeases,
} from "leasehold/cli";
import { startConsole } from "../index.js";

interface ConsoleCommandOptions extends SharedOptions {
  readonly address: string;
  readonly hostName?: readonly string[];
  readonly passwordFile?: string;
  readonly allowChanges?: boolean;
}

/** Serves the console until a signal. */
export async function serveConsole(options: ConsoleCommandOptions): Promise<number> {
  const { address, hostName, passwordFile, allowChanges } = options;
  const settings = settingsOf(options);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const work = withLeases(
    settings,
    async (leases) => {
      const console = await startConsole(leases, settings, {
        address,
        ...(hostName !== undefined && { hostNames: hostName }),
        ...(passwordFile !== undefined && { passwordFile }),
        ...(allowChanges !== undefined && { allowChanges }),
      });
      printLine(`the console is at ${console.url}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await console.close();
    },
    signal,
  );
  await work.catch(ifAborted(signal, () => undefined));
  return exitCode("ok");
}
