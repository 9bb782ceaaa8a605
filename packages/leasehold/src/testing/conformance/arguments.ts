import type { AcquireOptions, Guarantees } from "../../lease/types.js";
import { check, codeOf, describe, type Stage, thrown } from "./stage.js";

const badNames = ["", "line\nbreak", "nul\u0000", "x".repeat(513), "ß".repeat(257), "half \ud83d a pair"];

const badDurations: AcquireOptions[] = [
  { ttl: "soon" },
  { ttl: "15" },
  { ttl: Number.NaN },
  { ttl: Infinity },
  { wait: -1 },
  { wait: "1 minute" },
  { maxHold: "1d" },
  { wait: `${"9".repeat(20)}s` },
];

/** Values that programs without types may pass. */
const badMilliseconds: unknown[] = ["5", "5s", null, -1, Number.NaN, 5n];

export const argumentCases = {
  "bad names are refused (INVALID_NAME)": async (stage: Stage) => {
    const alice = await stage.open("alice");
    for (const name of badNames) {
      const what = `of the name ${JSON.stringify(name.slice(0, 20))}`;
      await stage.rejectsWith(alice.acquire(name), "INVALID_NAME", `acquire ${what}`);
      await stage.rejectsWith(alice.tryAcquire(name), "INVALID_NAME", `tryAcquire ${what}`);
      await stage.rejectsWith(alice.holder(name), "INVALID_NAME", `holder ${what}`);
    }
  },

  "names of any script, up to 512 bytes, are accepted": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const room = 512 - stage.prefix.length;
    for (const name of [
      "with space",
      "ünïcödé/資源/🔒",
      "x".repeat(room),
      "ß".repeat(Math.floor(room / 2)),
    ]) {
      const lease = await stage.take(alice, name);
      check(lease.resource === stage.name(name), `the lease names ${JSON.stringify(lease.resource)}`);
    }
  },

  "bad durations are refused (INVALID_DURATION)": async (stage: Stage) => {
    const alice = await stage.open("alice");
    for (const options of badDurations) {
      const [[setting, value]] = Object.entries(options) as [[string, unknown]];
      const call = alice.acquire(stage.name("durations"), options);
      await stage.rejectsWith(call, "INVALID_DURATION", `acquire with ${setting} ${String(value)}`);
    }
  },

  "assertHeld takes a number of milliseconds, 0 or more (INVALID_DURATION)": async (stage: Stage) => {
    const lease = await stage.take(await stage.open("alice"), "looks");
    for (const bad of badMilliseconds) {
      const error = thrown(() => lease.assertHeld(bad as number));
      check(codeOf(error) === "INVALID_DURATION", `assertHeld(${String(bad)}) ended with ${describe(error)}`);
    }
    lease.assertHeld(0);
  },

  "an unknown option is refused (INVALID_CONFIG)": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const options: object = { tt: stage.ttlMs };
    for (const call of ["acquire", "tryAcquire", "holder"] as const) {
      const refused = alice[call](stage.name("options"), options);
      await stage.rejectsWith(refused, "INVALID_CONFIG", `${call} with the option tt`);
    }
  },

  "a TTL outside the guaranteed range is refused (TTL_OUT_OF_RANGE)": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const { ttlMinMs, ttlMaxMs } = alice.guarantees;
    for (const ttl of [ttlMinMs / 2, ttlMaxMs + 1]) {
      const call = alice.tryAcquire(stage.name("range"), { ttl });
      await stage.rejectsWith(call, "TTL_OUT_OF_RANGE", `a TTL of ${ttl} ms`);
    }
    const lease = await stage.until(alice.acquire(stage.name("range")), "acquire with the default TTL");
    check(
      lease.ttlMs === ttlMaxMs,
      `the default TTL is ${lease.ttlMs} ms, not the maximum of ${ttlMaxMs} ms`,
    );
  },

  "the guarantees can be read": async (stage: Stage) => {
    const alice = await stage.open("alice");
    const { guarantees, self } = alice;
    check(self !== "", "the participant has no name");
    const texts: (keyof Guarantees)[] = ["ground", "exclusion", "token", "progress"];
    for (const key of texts) {
      check(typeof guarantees[key] === "string" && guarantees[key] !== "", `the guarantees lack: ${key}`);
    }
    check(guarantees.assumptions.length > 0, "the guarantees name no assumption");
    const { ttlMinMs, ttlMaxMs, maxClockSkewMs, takeoverMsMax } = guarantees;
    check(ttlMinMs > 0 && ttlMaxMs >= ttlMinMs && ttlMaxMs < Infinity, "the range of the TTL is invalid");
    check(maxClockSkewMs >= 0, "the clock skew is negative");
    check(takeoverMsMax >= ttlMaxMs, "a takeover cannot be faster than the longest lease");
  },
};
