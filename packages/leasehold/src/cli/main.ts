#!/usr/bin/env node
import { holdSignals } from "./common/signals.js";

// Before anything else is loaded.
holdSignals();
// An early exit because nothing is left to wait for is not a success.
process.exitCode = 1;

/** Not a top-level await, because the command is bundled into a CommonJS module. */
async function start(): Promise<void> {
  const { shortageExitCode, shortageOf } = await import("./common/shortage.js");
  try {
    if (process.pid === 1) {
      const { leaveToInit } = await import("./common/init-process.js");
      leaveToInit();
    }
    const { beFront, endFront, isBehind, needsFront, watchFront } = await import("./common/front.js");

    const words = process.argv.slice(2);
    if (needsFront(words) && !isBehind()) {
      beFront();
    } else {
      if (isBehind()) watchFront();
      const { startGuardEarly } = await import("./run/guard-starter.js");
      startGuardEarly(words);
      const { main } = await import("./command.js");
      const code = await main(words);
      if (isBehind()) endFront(code);
      process.exit(code);
    }
  } catch (error) {
    // Loading a module needs a descriptor.
    const shortage = shortageOf(error);
    if (shortage === undefined) throw error;
    process.stderr.write(`leasehold: ${shortage}\n`, () => process.exit(shortageExitCode));
  }
}

void start();
