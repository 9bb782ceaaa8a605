import { LeaseholdError } from "../../lease/errors.js";
import type { Duration } from "../../lease/types.js";
import { parseDuration } from "../../lease/duration.js";
import { unlessAborted, unwatchAbort, watchAbort } from "../../common/abort-watch.js";
import type { World } from "../../common/ports.js";
import { openFleaseClient } from "./client.js";
import type { FleaseNode } from "./flease-node.js";
import type { MemberChange } from "../views/member-change.js";
import type { ViewStatus } from "../views/member-change.js";
import type { FleaseOptions } from "./types.js";

/** Timeout, cancellation and progress of a change. */
export interface ChangeOptions {
  /** Timeout for the whole change; a change that has begun continues after it. Default `"5m"`. */
  readonly timeout?: Duration | undefined;
  /** Aborts the call; a change that has begun continues. */
  readonly signal?: AbortSignal | undefined;
  /** Called several times a second with the state of the change. */
  readonly onProgress?: ((status: ViewStatus) => void) | undefined;
}

/** Timeout for beginning a change, which takes several calls among the members. */
const changeTimeoutMs = 10_000;
const askTimeoutMs = 2_000;

/** Interval for asking members about the state of a change, ms. */
const lookEveryMs = 250;

/** Lists the members of the cluster. */
export async function listMembers(
  addresses: readonly string[],
  options: FleaseOptions,
  world: World,
): Promise<ViewStatus> {
  const node = await openFleaseClient(addresses, options, world);
  try {
    return await ask(node, "members", {}, askTimeoutMs);
  } finally {
    await node.close();
  }
}

/**
 * Changes the members of a running cluster. Resolves when the change is over: from then on no lease is
 * valid that the new members do not know of. A change that cannot begin yet is retried until it can, and
 * leaves nothing behind until it begins. A change that has begun or is over is not begun again.
 *
 * @throws LeaseholdError `INVALID_CONFIG` for an impossible change, with the reason. After `timeout`, by
 * what was missing: `UNREACHABLE` for the new member, `NO_QUORUM` for votes, otherwise `TIMEOUT`.
 */
export async function changeMembers(
  addresses: readonly string[],
  options: FleaseOptions,
  change: MemberChange,
  { timeout = "5m", signal, onProgress = () => undefined }: ChangeOptions,
  world: World,
): Promise<ViewStatus> {
  const timeoutMs = parseDuration(timeout, "timeout");
  signal?.throwIfAborted();
  const asking = new Asking(addresses, options, change, onProgress, world);
  const late = world.timers.after(timeoutMs, () => asking.over.abort(asking.whyLate()));
  const giveUp = () => asking.over.abort(signal?.reason);
  watchAbort(signal, giveUp);
  try {
    return await unlessAborted(asking.run(), asking.over.signal);
  } finally {
    unwatchAbort(signal, giveUp);
    late.cancel();
    asking.over.abort();
  }
}

/** One change, from the first call to its end. */
class Asking {
  /** Aborts when the caller stops waiting. */
  readonly over = new AbortController();
  readonly #addresses: readonly string[];
  readonly #options: FleaseOptions;
  readonly #change: MemberChange;
  readonly #onProgress: (status: ViewStatus) => void;
  readonly #world: World;
  /** Last known state of the change. */
  #status: ViewStatus | undefined;

  constructor(
    addresses: readonly string[],
    options: FleaseOptions,
    change: MemberChange,
    onProgress: (status: ViewStatus) => void,
    world: World,
  ) {
    this.#addresses = addresses;
    this.#options = options;
    this.#change = change;
    this.#onProgress = onProgress;
    this.#world = world;
  }

  whyLate(): LeaseholdError {
    const { waiting } = this.#status ?? {};
    if (waiting !== undefined)
      return new LeaseholdError(waiting.code, `the members are not changed: ${waiting.text}`);
    return new LeaseholdError(
      "TIMEOUT",
      this.#status === undefined
        ? "no member has answered in time: leasehold member list shows whether the change has begun"
        : "the change has begun and goes on; leasehold member list shows when it is over",
    );
  }

  async run(): Promise<ViewStatus> {
    const node = await openFleaseClient(this.#addresses, this.#options, this.#world);
    watchAbort(this.over.signal, () => void node.close());
    try {
      // A change whose answer was lost may have begun: check before asking again.
      let mayHaveBegun = false;
      for (;;) {
        const status: ViewStatus | undefined = mayHaveBegun
          ? await this.#ask(node, "members", {}, askTimeoutMs)
          : await this.#ask(node, "change", this.#change, changeTimeoutMs);
        if (status !== undefined && status.joint === undefined && status.waiting === undefined) {
          if (isMade(this.#change, status)) return status;
          // The only member that knew of the change has gone, or another change replaced it.
          mayHaveBegun = false;
        } else {
          mayHaveBegun ||= status?.waiting === undefined;
        }
        await new Promise<void>((resolve) => this.#world.timers.after(lookEveryMs, resolve));
      }
    } finally {
      await node.close();
    }
  }

  /** Asks once; undefined when no member answered. */
  async #ask(
    node: FleaseNode,
    method: string,
    params: object,
    timeoutMs: number,
  ): Promise<ViewStatus | undefined> {
    this.over.signal.throwIfAborted();
    const status = await ask(node, method, params, timeoutMs).catch((error: unknown) => {
      if (error instanceof LeaseholdError && error.code === "UNREACHABLE") return undefined;
      throw error;
    });
    if (status !== undefined && !this.over.signal.aborted) this.#onProgress((this.#status = status));
    return status;
  }
}

/** Whether the change has been made. */
function isMade({ add, address, remove }: MemberChange, { members }: ViewStatus): boolean {
  if (remove !== undefined && members[remove] !== undefined) return false;
  return add === undefined || members[add] === address;
}

/**
 * Asks the first member by id that is connected, can answer, and is not in an older view than this client. So
 * two callers that change the members ask the same member.
 */
async function ask(node: FleaseNode, method: string, params: object, timeoutMs: number): Promise<ViewStatus> {
  let status: ViewStatus | undefined;
  let failure = new LeaseholdError("UNREACHABLE", "no member is connected");
  for (const index of node.views.voters()) {
    const link = node.link(index);
    if (link === undefined) continue;
    try {
      const answer = (await node.transport.call(link, method, params, timeoutMs)) as ViewStatus;
      const isBehind = answer.number < node.peer.views.view.number;
      if (answer.waiting?.elsewhere !== true && !isBehind) return answer;
      if (status === undefined || answer.number > status.number) status = answer;
    } catch (error) {
      if (!(error instanceof LeaseholdError) || error.code !== "UNREACHABLE") throw error;
      failure = error;
    }
  }
  if (status === undefined) throw failure;
  return status;
}
