// Writes to this machine's disk and syncs what it wrote, without a pause.
import { closeSync, fsyncSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const bytes = Buffer.alloc(1 << 20, 1);
const writesInFile = 64;
const folder = mkdtempSync(join(tmpdir(), "leasehold-writer-"));
const file = openSync(join(folder, "data"), "w");

process.on("disconnect", () => {
  closeSync(file);
  rmSync(folder, { recursive: true });
  process.exit();
});

let written = 0;
(function writeOne() {
  if (written % writesInFile === 0) ftruncateSync(file, 0);
  writeSync(file, bytes, 0, bytes.length, (written % writesInFile) * bytes.length);
  fsyncSync(file);
  written += 1;
  setImmediate(writeOne);
})();
process.send("writing");
