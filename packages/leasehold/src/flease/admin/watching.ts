import { LeaseholdError } from "../../lease/errors.js";
import { Pauses } from "../../common/pauses.js";
import type { ResourceHint } from "../../lease/types.js";
import { votersOf } from "../views/view.js";
import type { CellMap } from "../protocol/cells.js";
import { hintOf } from "./hints.js";
import type { ListedLease } from "./listing.js";
import type { AdminDriver } from "./driver.js";
import { pageFrom } from "./admin-answers.js";
import { WatchView } from "./watch-view.js";

/** A member without changes answers after this long, so that both sides know that the other is alive. */
export const watchHoldMs = 5_000;

/** Upper bound of the retry delay of a failed request; the lower bound is half of it. */
const retryMs = 1_000;

/** Timeout for answers that a member delays on purpose. */
const answerMsMax = watchHoldMs + 5_000;

/** A prefix has more resources than a watch may have, and a retry would fail again. */
export function isTooWide(error: unknown): error is LeaseholdError {
  return error instanceof LeaseholdError && error.code === "WATCH_TOO_WIDE";
}

/**
 * One watch over all members. Each has a long poll for changes, so that changes arrive at once, merged when
 * there are many. After a lost connection a member is read from the beginning.
 */
export class ClusterWatch {
  readonly #driver: AdminDriver;
  readonly #view: WatchView;
  readonly #prefix: string;
  readonly #report: (hint: ResourceHint) => void;
  readonly #failed: (error: LeaseholdError) => void;
  readonly #newSession: () => number;
  readonly #pauses: Pauses;
  /** Current session by member. */
  readonly #sessions: (number | undefined)[] = [];
  /** The followed view, and its members. */
  #stamp = -1;
  #voters: ReadonlySet<number> = new Set();
  /** Members with a polling loop, some of which may not have noticed that they are no longer followed. */
  readonly #followed = new Set<number>();
  #stopped = false;

  constructor(
    driver: AdminDriver,
    cells: CellMap,
    prefix: string,
    report: (hint: ResourceHint) => void,
    failed: (error: LeaseholdError) => void,
    newSession: () => number,
  ) {
    this.#driver = driver;
    this.#pauses = new Pauses(driver.runner.world.timers);
    this.#view = new WatchView(cells);
    this.#prefix = prefix;
    this.#report = report;
    this.#failed = failed;
    this.#newSession = newSession;
  }

  /** Follows the members of the present view: at the beginning, and on each change of the view. */
  begin(): void {
    const { settings, views } = this.#driver.runner.peer;
    const { view } = views;
    if (view.stamp === this.#stamp) return;
    this.#stamp = view.stamp;
    this.#voters = new Set(votersOf(view).map((id) => settings.members.indexOf(id)));
    for (const member of this.#voters) {
      if (this.#followed.has(member)) continue;
      this.#followed.add(member);
      void this.#follow(member);
    }
  }

  /** Whether the member has a vote in the present view. A new voter is followed from here on. */
  #isVoter(member: number): boolean {
    this.begin();
    return this.#voters.has(member);
  }

  stop(): void {
    this.#stopped = true;
    this.#pauses.end();
    for (const [member, session] of this.#sessions.entries()) {
      if (session === undefined) continue;
      // Ends the member's pending answer now. If the request does not arrive, the member drops the watch by
      // itself.
      this.#driver.ask(member, "unwatch", { session }, retryMs).catch(() => undefined);
    }
  }

  async #follow(member: number): Promise<void> {
    while (!this.#stopped && this.#isVoter(member)) {
      const session = this.#newSession();
      this.#sessions[member] = session;
      try {
        await this.#run(member, session);
      } catch (error) {
        this.#view.forget(member);
        if (isTooWide(error)) this.#fail(error);
      }
      this.#sessions[member] = undefined;
      const { random } = this.#driver.runner.world;
      if (!this.#stopped) await this.#pauses.pause(retryMs * (1 + random.next()) * 0.5);
    }
    this.#followed.delete(member);
    this.#view.forget(member);
  }

  #fail(error: LeaseholdError): void {
    if (this.#stopped) return;
    this.stop();
    this.#failed(error);
  }

  /** One session with a member; ends with an error, or when the watch is stopped. */
  async #run(member: number, session: number): Promise<void> {
    const params = { session, prefix: this.#prefix };
    // Its report from the beginning, until complete; `undefined` while it reports changes.
    let first: Map<string, ListedLease> | undefined;
    while (!this.#stopped && this.#isVoter(member)) {
      const page = pageFrom(await this.#driver.ask(member, "watch", params, answerMsMax));
      if (this.#stopped) return;
      if (page.anew) first = new Map();
      if (first === undefined) {
        this.#judge(this.#view.apply(member, page));
        continue;
      }
      for (const lease of page.held) first.set(lease.resource, lease);
      for (const resource of page.free) first.delete(resource);
      if (page.more) continue;
      this.#judge(this.#view.begin(member, first));
      first = undefined;
    }
  }

  #judge(resources: Iterable<string>): void {
    const { wall } = this.#driver.runner.now();
    const { ttlMaxMs } = this.#driver.runner.peer.settings;
    for (const resource of resources) {
      const verdict = this.#view.judge(resource);
      if (verdict?.state === "held") this.#report(hintOf(verdict.lease, wall, ttlMaxMs));
      else if (verdict?.state === "free") this.#report({ resource, state: "free" });
    }
  }
}
