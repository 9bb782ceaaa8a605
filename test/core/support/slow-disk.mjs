// Loaded before a server (`--import`): makes each write to its log take this many milliseconds longer.
import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const file = await open(process.execPath, "r");
const prototype = Object.getPrototypeOf(file);
await file.close();
const { write, writev } = prototype;
const delayMs = Number(process.env.TEST_WRITE_MS);
prototype.write = async function (...words) {
  await sleep(delayMs);
  return write.apply(this, words);
};
prototype.writev = async function (...words) {
  await sleep(delayMs);
  return writev.apply(this, words);
};
