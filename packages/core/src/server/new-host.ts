import { CoreHost } from "../host/host.js";
import type { HostPorts } from "../host/ports.js";
import { checksumOf } from "leasehold/journal";
import { defaultLimits } from "../replica/options.js";
import { Replica } from "../replica/replica.js";
import type { CoreMember } from "../state/members.js";
import type { CoreConfig } from "./config/config.js";
import type { DataDirectory } from "./disk/data-directory.js";
import { Disk } from "./disk/disk.js";
import { type DiskTimes, nodePorts } from "./node-ports.js";

/**
 * Divisor of the quota: one answer may take this part of it, as answers being made and being sent share
 * memory.
 */
const answersPerQuota = 4;

/** The host's reports and sends. */
export type HostEvents = Pick<
  ConstructorParameters<typeof CoreHost>[0],
  "compared" | "failed" | "leadership" | "roll" | "trouble"
> &
  Pick<HostPorts, "send"> &
  DiskTimes;

/** Upper bound of one answer's bytes. */
export function answerBytesMaxOf({ quotaBytes }: CoreConfig): number {
  return Math.min(defaultLimits.answerBytesMax, quotaBytes / answersPerQuota);
}

/** Makes this server's replica from the content of its data directory. */
export function newHost(
  config: CoreConfig,
  { journal, record, recovered, snapshots, state }: DataDirectory,
  founding: readonly CoreMember[],
  { synced, snapshotSaved, ...events }: HostEvents,
): CoreHost {
  const { id, cluster, disk } = record;
  const { advertiseClientUrls: clientUrls, electionTicks, heartbeatMs: tickMs, name } = config;
  const { operationsMax, requestBytesMax, snapshotEntries, tokens } = config;
  const answerBytesMax = answerBytesMaxOf(config);
  return new CoreHost({
    ...nodePorts(new Disk(journal, snapshots, recovered.snapshot.index), { synced, snapshotSaved }),
    ...events,
    logic: new Replica({
      id,
      cluster,
      recovered,
      state,
      random: { next: () => Math.random() },
      checksum: checksumOf,
      corruptCheckMs: config.corruptCheckMs,
      tickMs,
      electionTicks,
      autoCompaction: config.autoCompaction,
      quotaBytes: config.quotaBytes,
      founding,
      self: { name, clientUrls, disk },
      limits: {
        operationsMax,
        requestBytesMax,
        snapshotEntries,
        tokenTtlMs: tokens.ttlMs,
        answerBytesMax,
      },
    }),
    tickMs,
  });
}
