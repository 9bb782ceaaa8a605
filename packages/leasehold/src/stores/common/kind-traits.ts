import type { StoreTraits } from "../../delta/store.js";

/** The longest content on a server, bytes: a hundred times a record. */
const serverBytesMax = 65_536;

/** The properties of every store of a kind, which are also assumed for an unreachable one. */
type KindTraits = Pick<StoreTraits, "kind" | "bytesMax" | "pollMs" | "delayMs">;

export const kindTraits = {
  /**
   * A poll takes a few operations on cached names, or a few round trips to a file server. δ allows for a disk
   * that spins up or a busy file server; on an atomic store it is only a timeout. The maximum content is ten
   * times the longest record in practice.
   */
  directory: { kind: "atomic", bytesMax: 16_384, pollMs: 100, delayMs: 2_000 },
  /**
   * A poll reads one region, which is little, but comes from the disk itself. A unit has room for several
   * records of usual length, or for one of maximum length with its register's name. The address may set
   * another δ.
   */
  block: { kind: "slotted", bytesMax: 2_048, pollMs: 250, delayMs: 2_000 },
  s3: { kind: "atomic", bytesMax: serverBytesMax, pollMs: 1_000, delayMs: 2_000 },
  redis: { kind: "atomic", bytesMax: serverBytesMax, pollMs: 100, delayMs: 500 },
  postgres: { kind: "atomic", bytesMax: serverBytesMax, pollMs: 250, delayMs: 1_000 },
} as const satisfies Readonly<Record<string, KindTraits>>;
