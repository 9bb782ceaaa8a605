// A number that is incremented under a lease and stored in the same cell as the lease's record. A writer
// reads it, is stopped for a long time in the middle of its work, and resumes when its lease has long had
// another holder. The store refuses its write, without a token, because the cell is no longer the version
// that this writer read last. No number is lost, and none is issued twice.
//
//   node guarded-counter.mjs        starts two writers on a directory; the first stops itself before its write
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openGuardedCells } from "leasehold";

const resource = "examples/counter";

/** Increments the number three times, in a process of its own. */
async function writer(name, url) {
  const cells = await openGuardedCells(url, { name });
  const guarded = await cells.acquire(resource);
  try {
    for (let count = 0; count < 3; count++) {
      const next = Number(guarded.datum ?? 0) + 1;
      if (name === "slow" && count === 2) await stopHere(); // much time passes before the next line
      await guarded.write(String(next)); // one operation: writes the number and renews the lease
      console.log(`${name}: wrote ${next}`);
    }
  } catch (error) {
    console.log(`${name}: ${error.code}, nothing was written`);
  }
  await guarded.release();
  await cells.close();
  process.disconnect();
}

async function stopHere() {
  await new Promise((resolve) => process.send("stopped", resolve));
  process.kill(process.pid, "SIGSTOP");
}

async function main() {
  const folder = await mkdtemp(join(tmpdir(), "guarded-"));
  const url = `delta+file://${folder}?ttlMax=2s&maxStoreLatency=500ms`;
  const start = (name) => fork(fileURLToPath(import.meta.url), [name, url]);

  const slow = start("slow");
  await once(slow, "message"); // it has written two numbers, holds the lease and has stopped
  const quick = start("quick");
  await once(quick, "exit"); // it waited until the other's lease had expired, and continued
  slow.kill("SIGCONT");
  await once(slow, "exit");

  const cells = await openGuardedCells(url);
  console.log(`the number is ${(await cells.read(resource)).datum}`);
  await cells.close();
  await rm(folder, { recursive: true });
}

if (process.argv[2] === undefined) await main();
else await writer(process.argv[2], process.argv[3]);
