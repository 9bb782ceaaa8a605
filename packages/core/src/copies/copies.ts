import type { MemberId, Membership } from "../raft/types.js";

/** Asks another server for its copy of the content. Repeated until the answer arrives or times out. */
export interface CopyQuestion {
  readonly kind: "copy-question";
  readonly from: MemberId;
  readonly to: MemberId;
  /** Identifies the comparison; chosen by the asker. */
  readonly number: number;
  /** The receiver answers at this applied index, not earlier. */
  readonly index: number;
  /** The asker's revision at that index. */
  readonly revision: number;
}

export interface CopyAnswer {
  readonly kind: "copy-answer";
  readonly from: MemberId;
  readonly to: MemberId;
  readonly number: number;
  readonly outcome: (typeof copyOutcomes)[number];
  /** Valid with `hash` only. */
  readonly compacted: number;
  readonly hash: number;
}

export type CopyMessage = CopyQuestion | CopyAnswer;

/** Servers send a position in this list: append only. */
export const copyOutcomes = [
  /** The answer will follow. */
  "working",
  "hash",
  /** The server has applied this index, but its revision is lower. */
  "behind",
  /** The server has compacted the revision. */
  "compacted",
] as const;

/** A server's content at a revision, as a hash. Hashes are comparable only at equal compacted revisions. */
export interface Copy {
  readonly member: MemberId;
  readonly outcome: Exclude<CopyAnswer["outcome"], "working">;
  readonly compacted: number;
  readonly hash: number;
}

/** Result of a comparison of the servers' keys. */
export interface Comparison {
  readonly revision: number;
  /** Members whose copies equal the asker's, itself included. */
  readonly same: readonly MemberId[];
  readonly different: readonly MemberId[];
  /** Members with another compacted revision: their copies cannot be compared. */
  readonly incomparable: readonly MemberId[];
  /** Members without an answer. */
  readonly silent: readonly MemberId[];
  /**
   * Members contradicted by a majority of the voters. Only `nobody`: copies differ, and no majority decides
   * which is right. Empty: no differences.
   */
  readonly corrupt: readonly MemberId[];
  /** Copies differ, and voters not compared yet could complete a majority that decides. */
  readonly isOpen: boolean;
}

/**
 * Compares a server's content with the copies of others, all at one revision. Copies with another compacted
 * revision are skipped: they differ legitimately.
 */
export function compare(
  revision: number,
  own: Copy,
  others: ReadonlyMap<MemberId, Copy | undefined>,
  { voters }: Pick<Membership, "voters">,
): Comparison {
  const told = [...others.values()].filter((copy) => copy !== undefined);
  const isComparable = ({ compacted, outcome }: Copy) =>
    outcome === "behind" || (outcome === "hash" && compacted === own.compacted);
  const compared = [own, ...told.filter(isComparable)];
  const isOwn = ({ hash, outcome }: Copy) => outcome === "hash" && hash === own.hash;
  const idOf = ({ member }: Copy) => member;
  return {
    revision,
    same: compared.filter(isOwn).map(idOf),
    different: compared.filter((copy) => !isOwn(copy)).map(idOf),
    incomparable: told.filter((copy) => !isComparable(copy)).map(idOf),
    silent: [...others].filter(([, copy]) => copy === undefined).map(([id]) => id),
    ...judge(compared, voters),
  };
}

function judge(
  compared: readonly Copy[],
  voters: readonly MemberId[],
): Pick<Comparison, "corrupt" | "isOpen"> {
  const hashes = new Set(compared.map(({ hash, outcome }) => (outcome === "hash" ? hash : undefined)));
  if (hashes.size === 1) return { corrupt: [], isOpen: false };
  const unheard = voters.filter((id) => !compared.some(({ member }) => member === id)).length;
  let isOpen = false;
  for (const hash of hashes) {
    const agreeing = compared.filter((copy) => copy.outcome === "hash" && copy.hash === hash);
    const votes = agreeing.filter(({ member }) => voters.includes(member)).length;
    if (votes * 2 > voters.length) {
      const corrupt = compared.filter((copy) => !agreeing.includes(copy)).map(({ member }) => member);
      return { corrupt, isOpen: false };
    }
    isOpen ||= (votes + unheard) * 2 > voters.length;
  }
  return { corrupt: [0n], isOpen };
}
