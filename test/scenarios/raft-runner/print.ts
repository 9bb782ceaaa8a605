import type { Entry, Membership, Message, Persist, Ready } from "../../../packages/core/src/raft/types.js";
import { textOf } from "./server.js";

/** Entries as `index/term text`. */
export function printEntries(entries: readonly Entry[]): string {
  return entries.map((entry) => `${entry.index}/${textOf(entry).replace(":", " ")}`).join(", ");
}

export function printMembership({ voters, learners }: Membership): string {
  return learners.length === 0
    ? `voters ${voters.join(" ")}`
    : `voters ${voters.join(" ")}, learners ${learners.join(" ")}`;
}

export function printMessage(message: Message): string {
  return `${message.from} > ${message.to}  ${message.kind} in term ${message.term}${detailsOf(message)}`;
}

function detailsOf(message: Message): string {
  switch (message.kind) {
    case "pre-vote":
      return `, log until ${message.lastIndex}/${message.lastTerm}`;
    case "vote":
      return `, log until ${message.lastIndex}/${message.lastTerm}${message.transfer > 0 ? ", asked by the leader" : ""}`;
    case "pre-vote-answer":
    case "vote-answer":
      return message.granted ? ": yes" : ": no";
    case "append": {
      const entries = message.entries.length === 0 ? "nothing" : printEntries(message.entries);
      return `: after ${message.previousIndex}/${message.previousTerm} ${entries}; commit ${message.commit}`;
    }
    case "append-answer":
      return message.rejected
        ? `: not ${message.index}; try ${message.hintIndex}/${message.hintTerm}`
        : `: has ${message.index}`;
    case "commit":
      return `: ${message.index}/${message.indexTerm}`;
    case "heartbeat":
      return `: commit ${message.commit}${message.round === 0 ? "" : `, round ${message.round}`}`;
    case "heartbeat-answer":
      return message.round === 0 ? "" : `: round ${message.round}`;
    case "snapshot":
      return `: at ${message.meta.index}/${message.meta.term}, ${printMembership(message.meta.membership)}`;
    case "snapshot-answer":
      return message.rejected ? ": failed" : `: has ${message.index}`;
    case "timeout-now":
      return "";
  }
}

export function printPersist({ hardState, entries, snapshot }: Persist): string {
  const parts = [`term ${hardState.term}`];
  if (hardState.votedFor !== 0n) parts.push(`vote for ${hardState.votedFor}`);
  if (snapshot !== undefined) parts.push(`snapshot at ${snapshot.index}/${snapshot.term}`);
  if (entries.length > 0) parts.push(printEntries(entries));
  return parts.join(", ");
}

/** The output of a server other than writes and messages. */
export function printReady({ leadership, committed, reads }: Ready): string[] {
  const lines: string[] = [];
  if (leadership !== undefined) {
    const { role, leader, term } = leadership;
    lines.push(`${role} in term ${term}${role === "follower" && leader !== 0n ? ` of ${leader}` : ""}`);
  }
  if (committed.length > 0) lines.push(`applies ${printEntries(committed)}`);
  for (const { id, index } of reads) lines.push(`may answer read ${id} at ${index}`);
  return lines;
}
