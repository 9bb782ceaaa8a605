/**
 * Code that Leasehold's packages share for journals on disk: the layout of one write, which distinguishes a
 * write that a crash left incomplete from damage. Internal to those packages: it may change in any release.
 */
export { batchAt, isTorn, layBatch, sectorBytes, usedBytes } from "../journal/batch.js";
export { checksumOf } from "../journal/checksum.js";
