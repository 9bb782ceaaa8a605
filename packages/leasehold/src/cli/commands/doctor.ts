import { clientName } from "../../runtime/participant.js";
import { clockRateErrorDefault } from "../../common/clock-rates.js";
import { clockSlew, whyTooFast } from "../../runtime/clock-slew.js";
import { incarnation } from "../../runtime/world.js";
import { isCoreUrl } from "../../etcd/address.js";
import { clusterStatus } from "../../index.js";
import type { ErrorCode } from "../../lease/errors.js";
import { parseDuration } from "../../lease/duration.js";
import { isFarmUrl, parseFarmUrls } from "../../stores/farm-address.js";
import { examineFarm, type FarmReport } from "../../stores/examine.js";
import { directoriesOnOneDisk } from "../../stores/shared-disk.js";
import { exitCode } from "../common/exit-codes.js";
import { usageError } from "../common/failure.js";
import { present } from "../output/present.js";
import { printProgress } from "../output/print.js";
import {
  type Settings,
  type SharedOptions,
  openOptions,
  refuseMemory,
  settingsOf,
} from "../common/settings.js";
import { doctorCore } from "./doctor-core.js";
import { examineMembers } from "./doctor-members.js";
import { type BundleOptions, writeBundle } from "./bundle.js";
import { presentFarm } from "./doctor-stores.js";
import { clockFindings, type Examined, presentFindings, syncHints } from "./findings.js";
import { presentStatus } from "./status.js";
import { few } from "../../common/lists.js";

export interface DoctorOptions extends SharedOptions, BundleOptions {
  readonly duration: string;
}

/** The pause between progress messages, ms. */
const progressEveryMs = 100;

/**
 * `leasehold doctor`: exit code 78 if something is not suitable for leases, 69 if something cannot be
 * reached.
 */
export async function doctor(options: DoctorOptions): Promise<number> {
  const { bundle, include, metrics } = options;
  if (bundle === undefined && (include ?? metrics) !== undefined)
    throw usageError("--include and --metrics are for --bundle");
  const settings = settingsOf(options);
  refuseMemory("doctor", settings);
  const durationMs = parseDuration(options.duration, "--duration");
  let examined: Examined;
  try {
    examined = await examine(settings, durationMs);
  } catch (error) {
    // A fault that ends the examination may be the very subject of the report.
    if (bundle !== undefined) await writeBundle(bundle, options, { error: String(error) });
    throw error;
  }
  const { presentation, verdict } = examined;
  present(settings.output, presentation);
  if (bundle !== undefined) await writeBundle(bundle, options, presentation.document);
  return exitCode(verdict);
}

function examine(settings: Settings, durationMs: number): Promise<Examined> {
  if (settings.endpoints.some(isFarmUrl)) return doctorFarm(settings, durationMs);
  if (settings.endpoints.some(isCoreUrl)) return doctorCore(settings, durationMs);
  return doctorMembers(settings);
}

async function doctorFarm(settings: Settings, durationMs: number): Promise<Examined> {
  const address = parseFarmUrls(settings.endpoints);
  const { timeoutMs } = settings;
  const writer = `${clientName(undefined)}.${incarnation()}`;
  const stores = `${address.places.length} ${address.places.length === 1 ? "store" : "stores"}`;
  printProgress(`opening and probing ${stores} …`);
  const begun = performance.now();
  let printedMs = 0;
  const onProgress = (operations: number) => {
    const now = performance.now();
    if (now - printedMs < progressEveryMs) return;
    printedMs = now;
    const left = Math.max(0, durationMs - (now - begun)) / 1_000;
    printProgress(`measuring ${stores}: ${operations} operations, ${left.toFixed(1)} s to go`);
  };
  const report = await examineFarm(address, { writer, durationMs, timeoutMs, onProgress });
  printProgress("");
  const { clockRateError = clockRateErrorDefault } = address.settings;
  const tooFast = whyTooFast(await clockSlew(), clockRateError);
  const oneDisk = await directoriesOnOneDisk(address.places);
  const presentation = presentFarm(report, address, settings.endpoints, { tooFast, oneDisk });
  const verdict = verdictOf(report);
  return { presentation, verdict: verdict === "ok" && tooFast !== undefined ? "unfit" : verdict };
}

/** Errors of usage. */
const usageCodes = new Set<ErrorCode>(["INVALID_URL", "INVALID_CONFIG", "UNSUPPORTED"]);

function verdictOf({ stores, error }: FarmReport): "ok" | "usage" | "unfit" | "unavailable" {
  const errors = [...stores.map((store) => store.error), error].filter((each) => each !== undefined);
  if (errors.length === 0) return "ok";
  if (errors.some(({ code }) => usageCodes.has(code))) return "usage";
  return errors.every(({ code }) => code === "STORE_UNAVAILABLE") ? "unavailable" : "unfit";
}

async function doctorMembers(settings: Settings): Promise<Examined> {
  const reports = await clusterStatus(...few(settings.endpoints), openOptions(settings));
  const { verdict, findings } = examineMembers(reports, await clockFindings(clockRateErrorDefault));
  const examination = { verdict, findings: [...findings, ...(await syncHints())] };
  return { presentation: presentFindings("members", presentStatus(reports), examination), verdict };
}
