// One system's client in a process of its own: runs its parent's requests and reports the measurements.
import { Session } from "./measure.mjs";
import { load } from "./systems/index.mjs";

const [module, connection] = [process.argv[2], JSON.parse(process.argv[3])];

process.on("disconnect", () => process.exit());
// Errors that a client library throws in the background while a server is killed must not end the
// measurement.
process.on("unhandledRejection", (error) => process.stderr.write(`(${module}: ${error})\n`));

const { client } = await load(module);
const session = await Session.open(() => client(connection));

/** Replaces times by their quantiles. */
async function summary({ timesUs, ...rest } = {}) {
  if (timesUs === undefined) return rest;
  const { quantilesOf } = await import("./systems/histogram.mjs");
  return { ...rest, quantiles: quantilesOf(timesUs, [0.5, 0.99, 0.999]) };
}

process.on("message", async ({ call, argument }) => {
  if (call === "killed") return session.killed();
  try {
    const measured = await session[call](argument);
    // The parent reads the resource use of all processes before this one computes the quantiles.
    process.send({ isMeasured: true });
    process.send({
      value: argument?.needsTimes === false ? { ...measured, timesUs: undefined } : await summary(measured),
    });
  } catch (error) {
    process.send({ isMeasured: true });
    process.send({ error: `${call}: ${error?.stack ?? error}` });
  }
});
process.send({ value: session.abilities });
