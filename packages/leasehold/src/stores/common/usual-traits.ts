import type { StoreTraits } from "../../delta/store.js";

/** The longest content that servers are asked to keep, bytes: a hundred times a record. */
const serverBytesMax = 65_536;

/** What every store of a kind is: also what is assumed of one that is out of reach. */
type UsualTraits = Pick<StoreTraits, "kind" | "bytesMax" | "pollMs" | "delayMs" | "takesData">;

export const usualTraits = {
  /**
   * A look is a few operations on names that are in memory, or a few round trips to a file server. δ is for a
   * disk that spins up or a file server that is busy; on an atomic store it is a time-out and nothing more.
   * The longest content is ten times the longest record that people make.
   */
  directory: { kind: "atomic", bytesMax: 16_384, pollMs: 100, delayMs: 2_000 },
  /**
   * A look reads one region: little, but from the disk itself. A unit holds several records of usual length,
   * and one of the longest with its register's name. Its address may say another δ.
   */
  block: { kind: "slotted", bytesMax: 2_048, pollMs: 250, delayMs: 2_000 },
  /**
   * sanlock itself renews every two of its io_timeouts. A record is 200 bytes there; what it has in words
   * besides is checked when it is written.
   */
  sanlock: { kind: "slotted", bytesMax: 1_024, pollMs: 1_000, delayMs: 2_000, takesData: false },
  s3: { kind: "atomic", bytesMax: serverBytesMax, pollMs: 1_000, delayMs: 2_000 },
  redis: { kind: "atomic", bytesMax: serverBytesMax, pollMs: 100, delayMs: 500 },
  postgres: { kind: "atomic", bytesMax: serverBytesMax, pollMs: 250, delayMs: 1_000 },
} as const satisfies Readonly<Record<string, UsualTraits>>;
