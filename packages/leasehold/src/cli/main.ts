#!/usr/bin/env node
import { holdSignals } from "./common/signals.js";

// Before anything else is loaded.
holdSignals();
const { shortageExitCode, shortageOf } = await import("./common/shortage.js");

try {
  const { beFront, endFront, isBehind, needsFront, watchFront } = await import("./common/front.js");

  const words = process.argv.slice(2);
  if (needsFront(words) && !isBehind()) {
    beFront();
  } else {
    if (isBehind()) watchFront();
    const { main } = await import("./command.js");
    const code = await main(words);
    if (isBehind()) endFront(code);
    process.exit(code);
  }
} catch (error) {
  // To load a module takes a descriptor.
  const shortage = shortageOf(error);
  if (shortage === undefined) throw error;
  process.stderr.write(`leasehold: ${shortage}\n`, () => process.exit(shortageExitCode));
}
