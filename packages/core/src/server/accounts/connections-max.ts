import { invalidConfig } from "leasehold/common";
import { totalmem } from "node:os";

/** Open files reserved for the log, snapshots, other servers and metrics. etcd reserves 150. */
const filesReserved = 256;

/** Fewer connections would be useless. */
const connectionsMin = 64;

/**
 * Memory per connection. An idle one takes 12 KiB of this process, or 54 KiB over TLS (measured), and kernel
 * buffers.
 */
const bytesEach = 128 * 1024;

/** The divisor of the available memory: connections take at most a quarter. */
const partOfMemory = 4;

/**
 * Default bound of a server's connections.
 *
 * @throws LeaseholdError `INVALID_CONFIG` if this process may not open enough files
 */
export function connectionsMax(filesMax = openFilesMax(), memoryBytes = memoryMax()): number {
  const byFiles = filesMax - filesReserved;
  if (byFiles < connectionsMin)
    throw invalidConfig(
      `this process may open ${filesMax} files, and needs ${filesReserved + connectionsMin}: see "ulimit -n"`,
    );
  return Math.max(connectionsMin, Math.min(byFiles, Math.floor(memoryBytes / partOfMemory / bytesEach)));
}

/** Node has raised the limit to the system's hard limit. */
export function openFilesMax(): number {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}

function memoryMax(): number {
  // Without a limit this is 0, or more than any machine has.
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
