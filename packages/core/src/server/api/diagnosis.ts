import { create } from "@bufbuild/protobuf";
import {
  CertificateSchema,
  FollowerSchema,
  type ReportResponse,
  ReportResponseSchema,
  SyncTimesSchema,
} from "leasehold/etcd/gen/leasehold/own_pb.js";
import type { CoreHost } from "../../host/host.js";
import { packageVersion } from "leasehold/runtime";
import { certificatesOf } from "../wire/tls/certificate-files.js";
import type { CoreConfig } from "../config/config.js";
import type { Counters } from "../metrics/counters.js";
import { type ClusterFacts, headerNow, type UnaryHandlers } from "./calls/header.js";

type Settings = Pick<
  CoreConfig,
  "clientTls" | "electionTicks" | "heartbeatMs" | "name" | "peerTls" | "quotaBytes"
>;

/** This server's condition for operators, in more detail than etcd's `Status`. */
export class DiagnosisHandlers {
  readonly #host: CoreHost;
  readonly #facts: ClusterFacts;
  readonly #counters: Counters;
  readonly #settings: Settings;
  readonly #certificates: () => ReturnType<typeof certificatesOf>;
  readonly #begunMs = performance.now();

  constructor(host: CoreHost, facts: ClusterFacts, counters: Counters, settings: Settings) {
    this.#host = host;
    this.#facts = facts;
    this.#counters = counters;
    this.#settings = settings;
    this.#certificates = lookedAtSeldom(() => certificatesOf(settings.clientTls, settings.peerTls));
  }

  handlers(): UnaryHandlers {
    return { Report: (_call, callback) => callback(null, this.#report()) };
  }

  #report(): ReportResponse {
    const { applied, bytes, commit, lastIndex } = this.#host.status();
    const { electionTicks, heartbeatMs, name, quotaBytes } = this.#settings;
    const nowMs = performance.now();
    return create(ReportResponseSchema, {
      header: headerNow(this.#host, this.#facts),
      leaseholdVersion: packageVersion(),
      name,
      uptimeMs: BigInt(Math.round(nowMs - this.#begunMs)),
      commitIndex: BigInt(commit),
      appliedIndex: BigInt(applied),
      lastIndex: BigInt(lastIndex),
      stateBytes: BigInt(bytes),
      quotaBytes: BigInt(quotaBytes),
      diskBytes: BigInt(this.#facts.diskBytes()),
      heartbeatMs,
      electionMs: heartbeatMs * electionTicks,
      syncs: this.#syncs(),
      followers: this.#followers(),
      certificates: this.#certificates().map((each) =>
        create(CertificateSchema, { ...each, expiresMs: BigInt(each.expiresMs) }),
      ),
      // Read last, since the rest takes time.
      steadyMs: performance.now(),
    });
  }

  #syncs() {
    const times = this.#counters.recentSyncs;
    const at = (part: number) => times[Math.min(times.length - 1, Math.floor(part * times.length))] ?? 0;
    return create(SyncTimesSchema, {
      samples: times.length,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      longestMs: times.at(-1) ?? 0,
    });
  }

  #followers() {
    const { heartbeatMs } = this.#settings;
    const { followers, role } = this.#host.status();
    if (role !== "leader") return [];
    return followers.map(({ active, id, matchIndex, silentTicks, state }) => {
      const silentMs = silentTicks * heartbeatMs;
      return create(FollowerSchema, {
        id,
        heard: active,
        ...(Number.isFinite(silentMs) && { silentMs: BigInt(Math.round(silentMs)) }),
        getsSnapshot: state === "snapshot",
        matchIndex: BigInt(matchIndex),
      });
    });
  }
}

const lookMsMin = 10_000;

/** Caches a value that takes opening files, so that it is not read again for each of many callers. */
export function lookedAtSeldom<T>(look: () => T): () => T {
  let seen: { readonly value: T; readonly atMs: number } | undefined;
  return () => {
    const nowMs = performance.now();
    if (seen === undefined || nowMs - seen.atMs > lookMsMin) seen = { value: look(), atMs: nowMs };
    return seen.value;
  };
}
