import { X509Certificate } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parseCoreUrls } from "../../etcd/address.js";
import { type CertificateReport, clockRates } from "../../etcd/core-report.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { Leases } from "../../lease/types.js";
import { textOf } from "../../runtime/pem.js";
import { incarnation } from "../../runtime/world.js";
import { latenciesOf, samplesMax } from "../../stores/measure.js";
import { withLeases } from "../common/connection.js";
import type { Settings } from "../common/settings.js";
import { shortTime } from "../output/present.js";
import { printProgress } from "../output/print.js";
import { askServers, hasLeader, presentServers } from "./core-status.js";
import { type CoreMeasurement, type CoreSeen, examineCore } from "./examine-core.js";
import { clockFindings, type Examined, presentFindings } from "./findings.js";

/** `leasehold doctor` of a core: the state of its servers, and the cost of leases. */
export async function doctorCore(settings: Settings, durationMs: number): Promise<Examined> {
  const { ttlMaxMs, clockRateError } = parseCoreUrls(settings.endpoints);
  printProgress("asking the servers …");
  const before = await askServers(settings);
  const { measured, refusal } = hasLeader(before) ? await tryLeases(settings, durationMs) : nothing;
  // Clocks are compared even then.
  if (measured === undefined) await sleep(durationMs);
  const report = await askServers(settings);
  printProgress("");
  const examination = examineCore(report, {
    measured,
    refusal,
    rates: clockRates(before, report),
    ttlMaxMs,
    clockRateError,
    certificates: await ownCertificates(settings),
    nowMs: Date.now(),
    clocks: await clockFindings(clockRateError),
  });
  const presentation = presentFindings("servers", presentServers(report), examination);
  return { presentation, verdict: examination.verdict };
}

type Tried = Pick<CoreSeen, "measured" | "refusal">;

const nothing: Tried = {};

async function tryLeases(settings: Settings, durationMs: number): Promise<Tried> {
  try {
    return { measured: await measure(settings, durationMs) };
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return { refusal: error.message };
  }
}

/** The certificates that this command presents to servers. */
async function ownCertificates({ security }: Settings): Promise<CertificateReport[]> {
  const { tls } = security;
  if (tls === undefined) return [];
  const { validTo } = new X509Certificate(await textOf(tls.cert));
  return [{ towards: "", file: tls.cert, expiresMs: Date.parse(validTo), authority: false }];
}

/** Acquires, renews and releases one lease with a unique name, repeatedly. */
function measure(settings: Settings, durationMs: number): Promise<CoreMeasurement> {
  const name = `leasehold/doctor/${incarnation()}`;
  const [acquire, renew]: [number[], number[]] = [[], []];
  const run = async (leases: Leases): Promise<CoreMeasurement> => {
    const endMs = performance.now() + durationMs;
    do {
      printProgress(`measuring: ${acquire.length} leases, ${shortTime(endMs - performance.now())} to go`);
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
