import { type Stage, Theatre } from "./stage.js";

/** Runs compiled examples one after the other, and reports the result of each to the parent. */

const exampleMsMax = 120_000;

interface Example {
  run(stage: Stage): Promise<unknown>;
}

export interface Verdict {
  readonly name: string;
  /** Absent if the example succeeded. */
  readonly error?: string;
}

const [libraryUrl, ...names] = process.argv.slice(2);
const theatre = new Theatre(
  (await import(libraryUrl!)) as typeof import("leasehold"),
  ((await import(new URL("../../core/dist/index.js", libraryUrl).href)) as typeof import("@leasehold/core"))
    .startCore,
);
// The examples' imports of the package resolve to this.
Object.assign(globalThis, { leaseholdTheatre: theatre });
await theatre.raise();
for (const name of names) process.send!({ name, ...(await attempt(name)) } satisfies Verdict);
await theatre.drop();
process.disconnect();

async function attempt(name: string): Promise<{ error?: string }> {
  const example = (await import(`./${name}.js`)) as Example;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${exampleMsMax} ms`)), exampleMsMax);
  });
  try {
    await Promise.race([theatre.perform((stage) => example.run(stage)), late]);
    return {};
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  } finally {
    clearTimeout(timer);
  }
}
