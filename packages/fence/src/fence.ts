/**
 * The guard of one resource. One law: a write with a smaller token than the greatest seen is refused, in
 * one step with the write. The same token again is fine: it is the same tenure.
 *
 * A holder that reads the resource and computes its write from it should first call `claim`: a late write
 * of the holder before it is refused from then on.
 *
 * @typeParam Change what is written; each kind of resource has its own
 */
export interface Fence<Change> {
  /**
   * Writes, unless a greater token has been here.
   *
   * @throws FenceError `TOKEN_STALE`: nothing was written; `TOKEN_INVALID`: this is no token
   */
  write(token: bigint, change: Change): Promise<unknown>;
  /**
   * Refuses smaller tokens from now on, and writes nothing.
   *
   * @throws FenceError as `write`
   */
  claim(token: bigint): Promise<void>;
  /** The greatest token seen; 0n before the first. */
  greatest(): Promise<bigint>;
}
