import { Sessions } from "leasehold/common";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { type Asker, checkNamed, RightsCheck } from "../state/check-rights.js";
import { CoreError } from "../state/errors.js";
import type { KeyRange } from "../state/keys.js";
import type { Applied } from "../state/state.js";
import type { Context } from "./context.js";
import type { ClientRequest, Credentials } from "./types.js";

/**
 * Commands checked again when applied, against the revision of rights at which their token or certificate was
 * first checked (those that name no keys do no harm). All other commands are then only checked by user, so a
 * server must not let them pass before it knows which tokens have ended.
 */
const checkedTwice: ReadonlySet<Command["body"]["case"]> = new Set([
  "authenticate",
  "deleteRange",
  "leaseGrant",
  "leaseRevoke",
  "put",
  "registerLease",
  "txn",
] as const);

/** Requests that name no keys: every authenticated user may send them. */
const knownOnly: ReadonlySet<ClientRequest["kind"]> = new Set([
  "findLease",
  "leaseLeases",
  "leaseTimeToLive",
] as const);

/** Requests that need no rights: with these, clients without credentials find a majority. */
const toAnybody: ReadonlySet<ClientRequest["kind"]> = new Set(["memberList"] as const);

/**
 * Authentication and authorization of clients. A command is checked before it is proposed and again when it
 * is applied, as only then it is certain which rights hold. The first check refuses nothing, since this
 * server may not know of a user, a right or a token yet: a command that does not pass is checked again when
 * the leader has confirmed the read index.
 */
export class Callers {
  readonly #context: Context;
  /**
   * Tokens are in the log, so that every server knows them; each server counts their expiry separately. They
   * are not part of the state: a restarted server knows none, and clients authenticate again.
   */
  readonly #tokens: Sessions;
  #hasCaughtUp = false;
  #newAfter = Infinity;

  constructor(context: Context) {
    this.#context = context;
    this.#tokens = new Sessions(context.limits.tokenTtlMs, context.limits.tokensMax);
  }

  /**
   * Whether this server has, since its start, applied everything that was committed when it asked a leader.
   * Until then its state may be arbitrarily old, from a time with other rights, and the server shows nothing
   * of it. From then on it shows its state, even without a majority.
   */
  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  caughtUp(): void {
    this.#hasCaughtUp = true;
  }

  /** A leader has answered since this server began: all entries after this index are new. */
  newAfter(index: number): void {
    this.#newAfter = Math.min(this.#newAfter, index);
  }

  /**
   * Records the user in the command.
   *
   * @returns false if this server's state, which may be out of date, does not permit the command
   */
  mayPropose(command: Command, credentials: Credentials | undefined): boolean {
    if (credentials === undefined && !this.#context.state.auth.isEnabled) return true;
    if (!checkedTwice.has(command.body.case)) return false;
    try {
      this.sign(command, credentials);
      return true;
    } catch (error) {
      if (error instanceof CoreError) return false;
      throw error;
    }
  }

  /**
   * Records the user in the command, on a server that has applied everything committed when the request came.
   *
   * @throws CoreError
   */
  sign(command: Command, credentials: Credentials | undefined): void {
    const { auth } = this.#context.state;
    const asker = this.#asker(credentials);
    if (asker !== undefined) command.caller = { $typeName: "leasehold.core.Caller", ...asker };
    if (auth.isEnabled) checkNamed(new RightsCheck(auth, asker), command.body);
  }

  /**
   * Whether this server's state allows the read. If not, the read is checked again later, as a command is.
   */
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
   * Call it when an answer begins to be built, since the answer shows the keys of that moment.
   *
   * @returns undefined while authentication is disabled
   * @throws CoreError
   */
  checkRead(asked: ClientRequest, credentials: Credentials | undefined): RightsCheck | undefined {
    const { auth } = this.#context.state;
    // This server knows no tokens yet.
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
   * Returns the user of a watch; undefined while authentication is disabled. Call it only once this server
   * has caught up.
   *
   * @throws CoreError
   */
  checkWatch(range: KeyRange, credentials: Credentials | undefined): string | undefined {
    const { auth } = this.#context.state;
    const asker = this.#asker(credentials);
    if (auth.isEnabled) new RightsCheck(auth, asker).keys("read", range);
    return asker?.user;
  }

  /**
   * Checks that a watch's user may still read all of its keys.
   *
   * @throws CoreError
   */
  recheckWatch(range: KeyRange, user: string | undefined): void {
    const { auth } = this.#context.state;
    if (!auth.isEnabled) return;
    const asker = user === undefined ? undefined : { user, revision: auth.revision };
    new RightsCheck(auth, asker).keys("read", range);
  }

  userOf(token: string): string | undefined {
    return this.#tokens.use(token, this.#context.nowMs);
  }

  /** @throws CoreError `invalidAuthToken`, also while authentication is disabled, as in etcd */
  #asker(credentials: Credentials | undefined): Asker {
    if (credentials === undefined) return undefined;
    const { nowMs, state } = this.#context;
    const { isEnabled, revision } = state.auth;
    if (credentials.kind === "token") {
      const user = this.#tokens.use(credentials.token, nowMs);
      if (user === undefined) throw new CoreError("invalidAuthToken");
      return { user, revision };
    }
    // The token was signed before rights changed: requests that name no keys are refused, too.
    if (isEnabled && credentials.revision !== undefined && credentials.revision < revision)
      throw new CoreError("authRevisionOld");
    return { user: credentials.user, revision: credentials.revision ?? revision };
  }

  // Entries of the log

  applied(index: number, { body }: Command, { answer, isDone }: Applied): void {
    if (!isDone) return;
    if (body.case === "authenticate") {
      const { token: random, user } = body.value;
      if (random === "") return;
      const token = `${random}.${index}`;
      // Only the server that was asked has an answer to complete.
      if (answer !== undefined) Object.assign(answer, { token });
      // An older token may have ended while this server was away.
      if (index > this.#newAfter) this.#tokens.add(token, user, this.#context.nowMs);
    } else if (body.case === "userDelete" || body.case === "userChangePassword")
      this.#tokens.end(body.value.name);
    else if (body.case === "authDisable") this.#tokens.endAll();
  }

  /** Entries were skipped, which may have deleted users or changed passwords. */
  replaced(): void {
    this.#tokens.endAll();
  }

  tick(): void {
    this.#tokens.tick(this.#context.nowMs);
  }
}
