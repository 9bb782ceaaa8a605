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

function writeSome() {
  ftruncateSync(file, 0);
  for (let index = 0; index < writesInFile; index += 1) {
    writeSync(file, bytes, 0, bytes.length, index * bytes.length);
    fsyncSync(file);
  }
}

(function go() {
  writeSome();
  setImmediate(go);
})();
process.send("writing");
