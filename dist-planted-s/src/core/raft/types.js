/**
 * The vocabulary of the replicated log (Ongaro and Ousterhout, *In Search of an Understandable Consensus Algorithm*, and
 * Ongaro's thesis, *Consensus: Bridging Theory and Practice*).
 */
export const nobody = 0n;
