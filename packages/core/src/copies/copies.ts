import type { MemberId, Membership } from "../raft/types.js";

/** A server asks another what it has: again and again, until it is told or hears nothing. */
export interface CopyQuestion {
  readonly kind: "copy-question";
  readonly from: MemberId;
  readonly to: MemberId;
  /** Of the comparison, which the one that asks chooses. */
  readonly number: number;
  /** To be looked at when this has been applied, and no earlier. */
  readonly index: number;
  /** That the one that asks has at that index. */
  readonly revision: number;
}

export interface CopyAnswer {
  readonly kind: "copy-answer";
  readonly from: MemberId;
  readonly to: MemberId;
  readonly number: number;
  readonly outcome: (typeof copyOutcomes)[number];
  /** Meaningful with `hash` alone. */
  readonly compacted: number;
  readonly hash: number;
}

export type CopyMessage = CopyQuestion | CopyAnswer;

/** Servers send the place in this list: it only ever grows at its end. */
export const copyOutcomes = [
  /** It will be told. */
  "working",
  "hash",
  /** It has applied as much, and come to a lower revision. */
  "behind",
  /** It has compacted the revision away. */
  "compacted",
] as const;

/** What a server has at a revision: as a hash, which tells something for one compacted revision only. */
export interface Copy {
  readonly member: MemberId;
  readonly outcome: Exclude<CopyAnswer["outcome"], "working">;
  readonly compacted: number;
  readonly hash: number;
}

/** What came out of a comparison of the servers' keys. */
export interface Comparison {
  readonly revision: number;
  /** Whose copy is the asker's own; with itself. */
  readonly same: readonly MemberId[];
  readonly different: readonly MemberId[];
  /** They have compacted less or more, so that nothing can be said. */
  readonly incomparable: readonly MemberId[];
  /** They have not answered. */
  readonly silent: readonly MemberId[];
  /**
   * Those that a majority of the voters contradicts. `nobody` alone: there are differences, and no majority
   * to say who is right. Empty: no difference was seen.
   */
  readonly corrupt: readonly MemberId[];
  /** There are differences, and voters that were not compared could make a majority that says who is right. */
  readonly isOpen: boolean;
}

/**
 * Compares what a server has with the copies of others, all at one revision. Of copies that were compacted to
 * another revision nothing is said: they have other versions by right.
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
