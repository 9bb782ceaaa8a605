/**
 * What may be large, and what has to keep its order with that: it has a connection of its own, so that
 * heartbeats, votes and answers do not wait behind it. Proposals keep their order among themselves, and so do
 * entries: an append that overtakes another is refused. `commit` names an entry that has to be there before.
 */
export function isBulk({ kind }: { readonly kind: string }): boolean {
  return kind === "append" || kind === "commit" || isProposal(kind);
}

/** These wait at their sender while the connection is full; what a leader sends is bounded by the log's window. */
export function isProposal(kind: string): boolean {
  return kind === "propose" || kind === "propose-change";
}
