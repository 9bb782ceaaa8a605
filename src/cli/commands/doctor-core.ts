import { majorityOf } from "../../common/majority.js";
import { parseCoreUrls } from "../../etcd/address.js";
import type { CoreReport } from "../../etcd/core-report.js";
import type { Leases } from "../../lease/types.js";
import { incarnation } from "../../runtime/world.js";
import { type Latencies, latenciesOf, samplesMax } from "../../stores/measure.js";
import { withLeases } from "../common/connection.js";
import { exitCode } from "../common/exit-codes.js";
import type { Settings } from "../common/settings.js";
import { present, shortTime } from "../output/present.js";
import { sayProgress } from "../output/say.js";
import { askServers, hasLeader, presentServers } from "./core-status.js";
import { clockFindings, type Examination, type Finding, presentFindings } from "./findings.js";

/** A server whose log ends so many entries before the longest one lags. */
const lagMax = 5_000n;

/** A lease should outlast so many renewals for some of them to fail. */
const renewalsPerLease = 100;

/** How long acquiring and renewing a lease of this core took, ms. */
export interface CoreMeasurement {
  readonly acquire: Latencies;
  readonly renew: Latencies;
}

/** `leasehold doctor` of a core: how its servers are, and what leases cost there. */
export async function doctorCore(settings: Settings, durationMs: number): Promise<number> {
  const { ttlMaxMs, clockRateError } = parseCoreUrls(settings.endpoints);
  sayProgress("asking the servers …");
  const report = await askServers(settings);
  const measured = hasLeader(report) ? await measure(settings, durationMs) : undefined;
  sayProgress("");
  const examination = examineCore(report, measured, ttlMaxMs, await clockFindings(clockRateError));
  present(settings.output, presentFindings("servers", presentServers(report), examination));
  return exitCode(examination.verdict);
}

/** Takes, renews and releases one lease again and again, of a name that nobody else has. */
function measure(settings: Settings, durationMs: number): Promise<CoreMeasurement> {
  const name = `leasehold/doctor/${incarnation()}`;
  const [acquire, renew]: [number[], number[]] = [[], []];
  const run = async (leases: Leases): Promise<CoreMeasurement> => {
    const endMs = performance.now() + durationMs;
    do {
      sayProgress(`measuring: ${acquire.length} leases, ${shortTime(endMs - performance.now())} to go`);
      const lease = await timed(acquire, () => leases.acquire(name));
      await timed(renew, () => lease.renew());
      await lease.release();
    } while (performance.now() < endMs && acquire.length < samplesMax);
    return { acquire: latenciesOf(acquire), renew: latenciesOf(renew) };
  };
  return withLeases(settings, run);
}

async function timed<T>(samples: number[], run: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const value = await run();
  samples.push(performance.now() - begun);
  return value;
}

/** What the servers' answers and the measurement mean for leases. */
export function examineCore(
  report: CoreReport,
  measured: CoreMeasurement | undefined,
  ttlMaxMs: number,
  clocks: readonly Finding[],
): Examination {
  const { servers, size } = report;
  const up = servers.filter((server) => server.reachable);
  const findings: Finding[] = [
    ...servers.flatMap((server) =>
      server.reachable ? [] : [{ ok: false, text: `${server.address} does not answer: ${server.reason}` }],
    ),
    {
      ok: up.length === size,
      text: `${up.length} of ${size} servers answer; ${majorityOf(size)} are needed, so ${size - majorityOf(size)} may be missing`,
    },
  ];
  const ends = up.map(({ logIndex }) => logIndex);
  const longest = ends.reduce((most, each) => (each > most ? each : most), 0n);
  for (const { name, logIndex } of up)
    if (longest - logIndex > lagMax)
      findings.push({ ok: false, text: `${name} lags: its log is ${longest - logIndex} entries behind` });
  const isWhole = up.length === servers.length && up.length >= size;
  if (measured === undefined) return { verdict: "unavailable", findings: [...findings, ...clocks] };
  const { acquire, renew } = measured;
  findings.push({
    ok: true,
    text: `a lease is acquired in ${fine(acquire.p50)}, 99 % within ${fine(acquire.p99)} (${acquire.samples} times)`,
  });
  const advisedMs = renewalsPerLease * renew.p99;
  const isLong = ttlMaxMs >= advisedMs;
  findings.push({
    ok: isLong,
    text: `a renewal takes ${fine(renew.p50)}, 99 % within ${fine(renew.p99)}, and ttlMax is ${shortTime(ttlMaxMs)}${isLong ? "" : `: at least ${shortTime(advisedMs)} is advised`}`,
  });
  const all = [...findings, ...clocks];
  const fits = all.every(({ ok }) => ok);
  return { verdict: !isWhole ? "unavailable" : fits ? "ok" : "unfit", findings: all };
}

function fine(ms: number): string {
  return ms < 10 ? `${ms.toFixed(2)} ms` : shortTime(ms);
}
