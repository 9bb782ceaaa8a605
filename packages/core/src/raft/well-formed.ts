import type { AppendRequest, Entry, Message, PreVoteRequest, VoteRequest } from "./types.js";

/** Valid as an index, term or round. */
function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Whether this code could have sent the message. Bytes from peers are not trusted. */
export function isWellFormed(message: Message): boolean {
  if (!isCount(message.term)) return false;
  switch (message.kind) {
    case "vote":
      return isCount(message.transfer) && isOfCandidate(message);
    case "pre-vote":
      return isOfCandidate(message);
    case "append":
      return isSequence(message);
    case "append-answer":
      return isCount(message.index) && isCount(message.hintIndex) && isCount(message.hintTerm);
    case "commit":
      return isCount(message.index) && isCount(message.indexTerm) && message.indexTerm <= message.term;
    case "heartbeat":
      return isCount(message.commit) && isCount(message.round) && isCount(message.transfersOver);
    case "heartbeat-answer":
      return isCount(message.round) && message.holdMs >= 0 && message.holdMs < Infinity;
    case "snapshot": {
      const { index, term, membership } = message.meta;
      return isCount(index) && isCount(term) && term <= message.term && membership.voters.length > 0;
    }
    case "snapshot-answer":
      return isCount(message.index);
    case "timeout-now":
      return isCount(message.transfer) && message.transfer > 0;
    case "pre-vote-answer":
    case "vote-answer":
      return true;
  }
}

function isOfCandidate({ lastIndex, lastTerm, term }: PreVoteRequest | VoteRequest): boolean {
  return isCount(lastIndex) && isCount(lastTerm) && lastTerm < term;
}

/** Whether entries are consecutive, with terms that never decrease nor exceed the leader's. */
function isSequence(message: AppendRequest): boolean {
  const { previousIndex, previousTerm, entries, commit, term } = message;
  if (!isCount(previousIndex) || !isCount(previousTerm) || !isCount(commit)) return false;
  let before: Pick<Entry, "index" | "term"> = { index: previousIndex, term: previousTerm };
  for (const entry of entries) {
    if (entry.index !== before.index + 1 || !isCount(entry.term) || entry.term < before.term) return false;
    before = entry;
  }
  return before.term <= term;
}
