import { invalidConfig } from "leasehold/common";
import { totalmem } from "node:os";

/** Of the files that this process may open: for the log, snapshots, other servers and metrics. etcd keeps 150. */
const filesReserved = 256;

/** Fewer connections would be of no use to anybody. */
const connectionsMin = 64;

/** One that is open and idle takes 12 KiB of this process, over TLS 54 KiB (measured), and buffers of the kernel. */
const bytesEach = 128 * 1024;

/** Of the machine's memory, or what this process may have of it, connections take this part at most. */
const partOfMemory = 4;

/**
 * How many connections a server takes by default.
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

/** Node has raised it to what the system allows. */
export function openFilesMax(): number {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}

function memoryMax(): number {
  // Without a bound it is 0, or more than any machine has.
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
