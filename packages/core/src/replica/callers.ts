import { Sessions } from "leasehold/common";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { type Asker, checkNamed, RightsCheck } from "../state/check-rights.js";
import { CoreError } from "../state/errors.js";
import type { KeyRange } from "../state/keys.js";
import type { Applied } from "../state/state.js";
import type { Context } from "./context.js";
import type { ClientRequest, Credentials } from "./types.js";

/**
 * Where these are applied, keys are held against the revision of rights at which their token or certificate
 * was looked at; without keys they do no harm. All others are held against their user alone, so a server that
 * has not heard that a token has ended must not let it pass.
 */
const lookedAtTwice: ReadonlySet<Command["body"]["case"]> = new Set([
  "authenticate",
  "deleteRange",
  "leaseGrant",
  "leaseRevoke",
  "put",
  "registerLease",
  "txn",
] as const);

/** They name no keys: whoever is known may ask. */
const knownOnly: ReadonlySet<ClientRequest["kind"]> = new Set([
  "findLease",
  "leaseLeases",
  "leaseTimeToLive",
] as const);

/** Whoever asks is told, as rights stand at no time in the way: who looks for a majority needs it. */
const toAnybody: ReadonlySet<ClientRequest["kind"]> = new Set(["memberList"] as const);

/**
 * Who asks, and what may be asked. A command is looked at before it is proposed, and again where it is
 * applied: only there it is certain who may do what. So the look before may only let a command pass, or have
 * it looked at again after the leader has confirmed how far the log is: this server may not have heard yet of
 * a user, a right or a token.
 */
export class Callers {
  readonly #context: Context;
  /**
   * Each stands in the log, so that every server knows it; how long it is still good each counts for itself.
   * They are no part of the state: a server that has begun anew knows none, and clients authenticate again.
   */
  readonly #tokens: Sessions;
  #hasCaughtUp = false;
  #newAfter = Infinity;

  constructor(context: Context) {
    this.#context = context;
    this.#tokens = new Sessions(context.limits.tokenTtlMs, context.limits.tokensMax);
  }

  /**
   * Since this server began it has had everything that was committed when it asked a leader. Before that its
   * state may be of any time in the past, in which everybody may have been allowed to do everything: nothing is
   * shown by it. Afterwards it shows what it has, also without a majority.
   */
  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  caughtUp(): void {
    this.#hasCaughtUp = true;
  }

  /** A leader has answered since this server began: what comes after this entry is new. */
  newAfter(index: number): void {
    this.#newAfter = Math.min(this.#newAfter, index);
  }

  /**
   * Says in the command for whom it is.
   *
   * @returns false if it would be refused as things stand here, which may not be how they are
   */
  mayPropose(command: Command, credentials: Credentials | undefined): boolean {
    if (credentials === undefined && !this.#context.state.auth.isEnabled) return true;
    if (!lookedAtTwice.has(command.body.case)) return false;
    try {
      this.sign(command, credentials);
      return true;
    } catch (error) {
      if (error instanceof CoreError) return false;
      throw error;
    }
  }

  /**
   * The same, of a server that has heard of everything that was there when it was asked.
   *
   * @throws CoreError
   */
  sign(command: Command, credentials: Credentials | undefined): void {
    const { auth } = this.#context.state;
    const asker = this.#asker(credentials);
    if (asker !== undefined) command.caller = { $typeName: "leasehold.core.Caller", ...asker };
    if (auth.isEnabled) checkNamed(new RightsCheck(auth, asker), command.body);
  }

  /** Whether this may be read as things stand here; else it is looked at again, as with a command. */
  mayRead(asked: ClientRequest, credentials: Credentials | undefined): boolean {
    if (!this.#hasCaughtUp) return toAnybody.has(asked.kind);
    if (credentials === undefined && !this.#context.state.auth.isEnabled) return true;
    try {
      this.checkRead(asked, credentials);
      return true;
    } catch (error) {
      if (error instanceof CoreError) return false;
      throw error;
    }
  }

  /**
   * To be called where the answer begins to be made, as it shows keys as they are then.
   *
   * @returns undefined while everybody may do everything
   * @throws CoreError
   */
  checkRead(asked: ClientRequest, credentials: Credentials | undefined): RightsCheck | undefined {
    const { auth } = this.#context.state;
    // It knows no tokens yet.
    if (!this.#hasCaughtUp && toAnybody.has(asked.kind)) return undefined;
    if (credentials === undefined && !auth.isEnabled) return undefined;
    const asker = this.#asker(credentials);
    if (!auth.isEnabled) return undefined;
    const check = new RightsCheck(auth, asker);
    if (asked.kind === "range") check.range(asked.request);
    else if (asked.kind === "txn") check.txn(asked.request);
    else if (asked.kind === "freeze") check.root();
    else if (knownOnly.has(asked.kind)) check.known();
    return check;
  }

  /**
   * Whose watch it is; undefined: nobody's, and everybody may watch. To be asked once this server has caught up.
   *
   * @throws CoreError
   */
  checkWatch(range: KeyRange, credentials: Credentials | undefined): string | undefined {
    const { auth } = this.#context.state;
    const asker = this.#asker(credentials);
    if (auth.isEnabled) new RightsCheck(auth, asker).keys("read", range);
    return asker?.user;
  }

  /** A watch goes on while its user may read all of its keys. @throws CoreError */
  recheckWatch(range: KeyRange, user: string | undefined): void {
    const { auth } = this.#context.state;
    if (!auth.isEnabled) return;
    const asker = user === undefined ? undefined : { user, revision: auth.revision };
    new RightsCheck(auth, asker).keys("read", range);
  }

  /** @throws CoreError `invalidAuthToken`, also while everybody may do everything, as in etcd */
  #asker(credentials: Credentials | undefined): Asker {
    if (credentials === undefined) return undefined;
    const { nowMs, state } = this.#context;
    const { isEnabled, revision } = state.auth;
    if (credentials.kind === "token") {
      const user = this.#tokens.use(credentials.token, nowMs);
      if (user === undefined) throw new CoreError("invalidAuthToken");
      return { user, revision };
    }
    // Signed before rights changed: also what does not depend on keys is refused.
    if (isEnabled && credentials.revision !== undefined && credentials.revision < revision)
      throw new CoreError("authRevisionOld");
    return { user: credentials.user, revision: credentials.revision ?? revision };
  }

  // What the log says

  applied(index: number, { body }: Command, { answer, isDone }: Applied): void {
    if (!isDone) return;
    if (body.case === "authenticate") {
      const { token: random, user } = body.value;
      if (random === "") return;
      const token = `${random}.${index}`;
      // Other servers wait for no answer.
      if (answer !== undefined) Object.assign(answer, { token });
      // It may have been given, and have ended, while this server was away.
      if (index > this.#newAfter) this.#tokens.add(token, user, this.#context.nowMs);
    } else if (body.case === "userDelete" || body.case === "userChangePassword")
      this.#tokens.end(body.value.name);
    else if (body.case === "authDisable") this.#tokens.endAll();
  }

  /** Entries were skipped: users may have gone with them. */
  replaced(): void {
    this.#tokens.endAll();
  }

  tick(): void {
    this.#tokens.tick(this.#context.nowMs);
  }
}
