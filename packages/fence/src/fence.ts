/**
 * Guards one resource: a write with a token smaller than the greatest seen is refused, atomically with the
 * write. An equal token is accepted, since it belongs to the same tenure.
 *
 * A holder that reads the resource and computes its write from the result should first call `claim`: the
 * previous holder's late writes are refused from then on.
 *
 * @typeParam Change the content of a write; each kind of resource has its own
 */
export interface Fence<Change> {
  /**
   * Writes, unless the fence has seen a greater token.
   *
   * @throws FenceError `TOKEN_STALE`: nothing was written; `TOKEN_INVALID`: this is not a token
   */
  write(token: bigint, change: Change): Promise<unknown>;
  /**
   * Refuses smaller tokens from now on. Writes nothing.
   *
   * @throws FenceError as `write`
   */
  claim(token: bigint): Promise<void>;
  /** The greatest token seen; 0n before the first. */
  greatest(): Promise<bigint>;
}
