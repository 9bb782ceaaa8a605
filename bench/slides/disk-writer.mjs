// Writes to the given file and syncs it, without a pause.
import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";

const bytes = Buffer.alloc(1 << 20, 1);
const writesInFile = 64;
const { path } = JSON.parse(process.argv[2]);
const file = openSync(path, "w");

process.on("disconnect", () => {
  closeSync(file);
  rmSync(path);
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
process.send("ready");
