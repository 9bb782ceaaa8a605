/**
 * What the packages of Leasehold share to keep a journal on a disk: how one write lies in its file, so that
 * what a crash left half written is told from damage. For those packages only: it may change in any release.
 */
export { batchAt, isTorn, layBatch, sectorBytes, usedBytes } from "../journal/batch.js";
export { checksumOf } from "../journal/checksum.js";
