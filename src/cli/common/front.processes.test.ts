import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { mainPath } from "../../../test/support/built.js";

// The process behind, as the front starts it, with a front that has gone already.

test("a process behind whose front is killed while it starts ends without a word", async () => {
  const words = [mainPath, "ls", "--endpoints", "delta+file:///nowhere"];
  const behind = spawn(process.execPath, words, {
    argv0: "leasehold-behind",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  let said = "";
  for (const output of [behind.stdout, behind.stderr])
    output!.setEncoding("utf8").on("data", (text: string) => (said += text));
  // Node needs longer to start than this takes.
  behind.stdio[3]!.destroy();
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    behind.on("close", (...how) => resolve(how));
  });
  expect({ code, signal, said }).toEqual({ code: null, signal: "SIGKILL", said: "" });
});
