import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { LeaseholdError } from "leasehold/common";
import type { Comparison } from "../copies/copies.js";
import { MemberListRequestSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { CoreHost } from "../host/host.js";
import type { MemberId } from "../raft/types.js";
import { CoreError, type CoreFailure } from "../state/errors.js";
import type { Reports } from "./reports.js";

/**
 * How long a starting server waits to catch up, in addition to two elections, ms; etcd's timeout of a
 * request.
 */
const catchUpMs = 5_000;

const withoutLeader: ReadonlySet<CoreFailure> = new Set(["noLeader", "leaderChanged", "stopped", "timeout"]);

export interface CopiesOptions {
  readonly host: Pick<CoreHost, "request" | "step">;
  readonly self: MemberId;
  readonly electionMs: number;
  readonly reports: Pick<Reports, "limited" | "log" | "nameOf">;
}

/** Runs comparisons of the servers' keys, and reports them to operators. */
export class Copies {
  readonly #options: CopiesOptions;
  readonly #closed = new AbortController();
  #ended: (comparison: Comparison) => void = () => undefined;

  constructor(options: CopiesOptions) {
    this.#options = options;
  }

  /** A comparison has ended, which was requested here or by the leader's schedule. */
  take(comparison: Comparison): void {
    const { revision, different, corrupt, incomparable } = comparison;
    const warn = (text: string) => this.#warn(text);
    if (incomparable.length > 0)
      warn(`nothing can be said of the keys of ${this.#names(incomparable)}: their history is another`);
    if (corrupt.length > 0) {
      const isKnown = !corrupt.includes(0n);
      const text = `at revision ${revision} the keys of ${this.#names(isKnown ? corrupt : different)} are not those of`;
      warn(
        isKnown
          ? `${text} a majority of the servers`
          : `${text} this server, and no majority says who is right`,
      );
    }
    this.#ended(comparison);
  }

  #warn(text: string): void {
    this.#options.reports.limited("copies-differ", text, text, { error: text });
  }

  close(): void {
    this.#closed.abort();
  }

  /**
   * Compares this server's content with that of the other servers, as far as they answer; called before
   * clients are served. If servers differ, and others could decide which is right, it waits for those: a
   * server that is right must not stop, and one that is wrong must not serve clients.
   *
   * @throws LeaseholdError `LOG_CORRUPT` if a majority has other content, or all have answered without a
   *   majority
   */
  async checkOwn(): Promise<void> {
    const { electionMs, reports } = this.#options;
    const info = (text: string) => reports.log("initial-check", text, {});
    const warn = (text: string) => this.#warn(text);
    await this.#catchUp();
    let comparison = await this.#compare();
    while (comparison.isOpen) {
      const { different, incomparable, silent } = comparison;
      warn(
        `initial check: no client is served before a majority says who is right: the keys of ${this.#names(different)} ` +
          `are others, and ${this.#names([...silent, ...incomparable])} cannot be asked`,
      );
      await sleep(electionMs, undefined, { signal: this.#closed.signal });
      comparison = await this.#compare();
    }
    this.#judgeOwn(comparison);
    const { revision, same, silent } = comparison;
    if (silent.length > 0) info(`initial check: ${this.#names(silent)} did not answer`);
    const others = same.filter((id) => id !== this.#options.self);
    info(
      others.length === 0
        ? "initial check: there was nobody to compare with"
        : `initial check: the same keys as ${this.#names(others)} at revision ${revision}`,
    );
  }

  #compare(): Promise<Comparison> {
    return new Promise((resolve) => {
      this.#ended = resolve;
      this.#options.host.step({ kind: "compare-copies" });
    });
  }

  #judgeOwn({ corrupt, different, revision }: Comparison): void {
    const { reports, self } = this.#options;
    if (!corrupt.includes(self) && !corrupt.includes(0n)) return;
    const found = `${reports.nameOf(self)} found data inconsistency with peers: at revision ${revision} its keys are not those of`;
    const end = corrupt.includes(self) ? "" : ", and there is no majority that says who is right";
    throw new LeaseholdError("LOG_CORRUPT", `${found} ${this.#names(different)}${end}`);
  }

  /**
   * Waits until writes during this server's absence are applied. Otherwise the others might have compacted
   * the revision to compare.
   */
  #catchUp(): Promise<void> {
    const { electionMs, host, reports } = this.#options;
    const deadlineMs = performance.now() + catchUpMs + 2 * electionMs;
    const request = create(MemberListRequestSchema, { linearizable: true });
    return new Promise((resolve) => {
      host.request("initial check", { kind: "memberList", request }, deadlineMs, (result) => {
        if (result instanceof CoreError && withoutLeader.has(result.failure))
          reports.log(
            "initial-check",
            `initial check: of what this server has by itself, as it cannot catch up (${result.message})`,
            {},
          );
        resolve();
      });
    });
  }

  #names(members: readonly MemberId[]): string {
    return members.map((member) => this.#options.reports.nameOf(member)).join(", ");
  }
}
