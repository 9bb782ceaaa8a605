/**
 * Messages that may be large, and those that must stay in order with them. They have a connection of their
 * own, so that heartbeats, votes and answers do not wait behind them. Proposals stay in order among
 * themselves, and so do entries: an append that overtakes another is refused. `commit` names an entry that
 * must arrive before.
 */
export function isBulk({ kind }: { readonly kind: string }): boolean {
  return kind === "append" || kind === "commit" || isProposal(kind);
}

/** These wait at their sender while the connection is full; the log's window bounds what a leader sends. */
export function isProposal(kind: string): boolean {
  return kind === "propose" || kind === "propose-change";
}
