import type { AppendAnswer, MemberId } from "./types.js";

interface Head {
  readonly from: MemberId;
  readonly to: MemberId;
  readonly term: number;
}

/** The sender's log agrees with the leader's up to this index, and is on disk. */
export function acceptedUpTo(index: number, head: Head): AppendAnswer {
  return { kind: "append-answer", ...head, rejected: false, index, hintIndex: 0, hintTerm: 0 };
}

/** @param hint an index at which the two logs may agree */
export function rejectedAt(
  index: number,
  hint: { readonly index: number; readonly term: number },
  head: Head,
): AppendAnswer {
  const { index: hintIndex, term: hintTerm } = hint;
  return { kind: "append-answer", ...head, rejected: true, index, hintIndex, hintTerm };
}
