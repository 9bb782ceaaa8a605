import { withPlanted } from "../build.js";
import type { Progress } from "../progress.js";
import { RunFolder } from "../run-folder.js";
import { playMembers } from "./run.js";

const name = "an acceptor forgets what it knows when the view changes";
const minutes = 1;
const seed = 20;

/** The exit code is 0 only if the mistake was found: two holders at once. */
export async function membersSelfTest(output: string, progress: Progress): Promise<number> {
  const folder = new RunFolder();
  const build = withPlanted("viewChangeForgets");
  const { why, seconds, changes, tenures } = await playMembers({ minutes, seed, build, folder }, progress);
  progress.clear();
  const found = why.filter((text) => text.startsWith("overlap"));
  const seen = found.length > 0;
  const result = { name, seen, found: found.length, seconds, changes, tenures };
  if (output === "json") process.stdout.write(`${JSON.stringify(result)}\n`);
  else
    process.stdout.write(
      `${seen ? "seen" : "NOT SEEN"}: ${name}\n  ${found.length} overlaps, ${tenures} tenures, ${seconds} s\n`,
    );
  return seen ? 0 : 1;
}
