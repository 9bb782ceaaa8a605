/**
 * Whether a message may be large, or must stay in order with large ones. Such messages have a separate
 * connection, so that heartbeats, votes and answers do not wait behind them. Proposals stay in order among
 * themselves, and so do entries: an append that overtakes another is refused. `commit` names an entry that
 * must arrive first.
 */
export function isBulk({ kind }: { readonly kind: string }): boolean {
  return kind === "append" || kind === "commit" || isProposal(kind);
}

/**
 * While the connection is full, proposals wait at their sender. The log's window bounds the messages of a
 * leader.
 */
export function isProposal(kind: string): boolean {
  return kind === "propose" || kind === "propose-change";
}
