import { create } from "@bufbuild/protobuf";
import { Permission_Type as Type } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import { WatchRequestSchema } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { AuthCommand, ClientRequest, Credentials } from "@leasehold/core/inner/replica/types.js";
import { CoreError } from "@leasehold/core/inner/state/errors.js";
import { SimRandom } from "../../kit/random.js";
import type { RightsJudge } from "../checkers/rights.js";
import { auth, bytes, put, range, txn } from "../world/requests.js";
import type { SimServer } from "../world/server.js";
import type { CoreWorld, Outcome } from "../world/world.js";

/** The random stream of its choices, so that the other draws of a run stay the same. */
const rightsStream = 2 ** 52;

/** Time at the end for the slowest disk to finish. */
const quietMs = 20_000;

const root: Credentials = { kind: "user", user: "root" };
/** The anonymous user. */
const nobody: Credentials = { kind: "user", user: "" };
const secret = bytes("secret");
const keys = { key: bytes("r/"), rangeEnd: bytes("r0") };

/** How often the end of a right is followed by the restart of a server. */
const restartChance = 0.3;

/** The pause between two attempts at a change, until one is answered. */
const pauseMs = 200;

/**
 * Grants a user rights, revokes them and deletes the user, in turn, at any server. In between the user reads
 * and writes, with a token or a certificate. Once a change is answered, every server must enforce it.
 */
export class RightsClient {
  readonly #world: CoreWorld;
  readonly #judge: RightsJudge;
  readonly #random: SimRandom;
  #count = 0;
  #token: Credentials | undefined;
  /** The work of an earlier session is void: another core has taken over, and may know less. */
  #session = 0;
  /** The right has certainly ended, and has not been requested again. */
  #isWithdrawn = false;

  constructor(world: CoreWorld, judge: RightsJudge) {
    this.#world = world;
    this.#judge = judge;
    this.#random = new SimRandom(world.plan.seed + rightsStream);
    world.whenReplaced(() => {
      this.#session += 1;
      // A core does not accept tokens of another core.
      this.#setUp(() => this.#oldToken());
    });
  }

  begin(): void {
    this.#setUp(() => this.#grant());
  }

  #setUp(then: () => void): void {
    const perm = { ...keys, permType: Type.READWRITE };
    const setUp: AuthCommand[] = [
      { case: "userAdd", value: { name: "root", secret } },
      { case: "userGrantRole", value: { user: "root", role: "root" } },
      { case: "roleAdd", value: { name: "some" } },
      { case: "roleGrantPermission", value: { name: "some", perm } },
      { case: "authEnable", value: {} },
    ];
    this.#all(setUp, then);
  }

  /** The user gets the right, and uses it for a while. */
  #grant(): void {
    this.#isWithdrawn = false;
    const commands: AuthCommand[] = [
      { case: "userAdd", value: { name: "ann", secret } },
      { case: "userGrantRole", value: { user: "ann", role: "some" } },
    ];
    this.#all(commands, () => this.#authenticate(() => this.#use(true, 4, () => this.#withdraw())));
  }

  /** Revokes the right during writes: later ones are refused. */
  #withdraw(): void {
    if (this.#isOver) return;
    this.#ask(this.#write(), this.#user(), () => undefined);
    const isDeleted = this.#random.chance(0.5);
    const command: AuthCommand = isDeleted
      ? { case: "userDelete", value: { name: "ann" } }
      : { case: "userRevokeRole", value: { name: "ann", role: "some" } };
    this.#all([command], () => {
      this.#isWithdrawn = true;
      this.#askAtStart(this.#user());
      this.#use(false, 2, () => {
        if (isDeleted) this.#oldToken();
        else this.#grant();
      });
    });
  }

  /**
   * Restarts a server and asks it for its own answers, both before and after it can know a leader. By then
   * the right has certainly ended.
   */
  #askAtStart(who: Credentials): void {
    const world = this.#world;
    const server = this.#random.pick(world.servers);
    const isWanted = this.#random.chance(restartChance) && world.nowMs < world.plan.stableFromMs;
    if (!isWanted || !server.isUp || server.isPaused) return;
    world.crash(server);
    world.start(server);
    const { life } = server;
    const ask = () => {
      if (server.life !== life || !server.isUp || !this.#isWithdrawn) return;
      for (const credentials of [who, nobody]) this.#askByItself(server, credentials);
    };
    ask();
    this.#later(ask);
  }

  #askByItself(server: SimServer, credentials: Credentials): void {
    const { life } = server;
    const session = this.#session;
    const judge = (isShown: boolean, what: string) => {
      if (session === this.#session && this.#isWithdrawn) this.#judge.shown(isShown, what);
    };
    const requests: ClientRequest[] = [
      range("r/1", { serializable: true }),
      txn({
        success: [{ request: { case: "requestRange", value: { key: bytes("r/1"), serializable: true } } }],
      }),
      { kind: "freeze", request: {} },
    ];
    for (const request of requests)
      this.#world.call(server, request, (outcome) => judge(!isFailure(outcome), request.kind), credentials);
    const watch = this.#world.watch(
      server,
      ({ events }) => judge(events.length > 0, "a watch"),
      () => undefined,
      credentials,
    );
    const value = { ...keys, startRevision: BigInt(this.#world.reference.state.revisions.compacted + 1) };
    watch?.send(create(WatchRequestSchema, { requestUnion: { case: "createRequest", value } }));
    this.#later(() => {
      if (server.life === life) watch?.close();
    });
  }

  /** A new user of the same name must not inherit the token. */
  #oldToken(): void {
    this.#isWithdrawn = false;
    const token = this.#token;
    const commands: AuthCommand[] = [
      { case: "userAdd", value: { name: "ann", secret } },
      { case: "userGrantRole", value: { user: "ann", role: "some" } },
    ];
    this.#all(commands, () => {
      if (token === undefined) this.#grant();
      else
        this.#ask(range("r/1"), token, (outcome) => {
          this.#judge.used(outcome, "a token of a user who is gone", false);
          this.#grant();
        });
    });
  }

  #authenticate(then: () => void): void {
    const secretOf: ClientRequest = { kind: "secret", request: { name: "ann" } };
    this.#ask(secretOf, root, (found) => {
      if (isFailure(found) || found.$typeName !== "leasehold.UserSecret") {
        this.#later(() => this.#authenticate(then));
        return;
      }
      this.#count += 1;
      const value = { user: "ann", token: `t${this.#count}`, revision: found.revision };
      this.#ask(auth({ case: "authenticate", value }), root, (outcome) => {
        const isToken = !isFailure(outcome) && outcome.$typeName === "etcdserverpb.AuthenticateResponse";
        this.#token = isToken ? { kind: "token", token: outcome.token } : undefined;
        then();
      });
    });
  }

  /** Uses the right `times` times, at any server. */
  #use(isAllowed: boolean, times: number, then: () => void): void {
    if (this.#isOver) return;
    if (times === 0) {
      then();
      return;
    }
    const request = this.#random.chance(0.5) ? this.#write() : range("r/1");
    this.#ask(request, this.#user(), (outcome) => {
      this.#judge.used(outcome, request.kind, isAllowed);
      this.#later(() => this.#use(isAllowed, times - 1, then));
    });
  }

  #user(): Credentials {
    const known: Credentials = { kind: "user", user: "ann" };
    return this.#random.chance(0.5) ? known : (this.#token ?? known);
  }

  #write(): ClientRequest {
    this.#count += 1;
    return put("r/1", `${this.#count}`);
  }

  /** Sends the commands in turn, each until it has certainly taken effect. */
  #all(commands: readonly AuthCommand[], then: () => void): void {
    if (this.#isOver) return;
    const [command, ...rest] = commands;
    if (command === undefined) {
      then();
      return;
    }
    this.#ask(auth(command), root, (outcome) => {
      const isSo = !isFailure(outcome) || (outcome instanceof CoreError && isAlreadySo.has(outcome.failure));
      this.#world.counters.rightsChanges += 1;
      this.#later(() => this.#all(isSo ? rest : commands, then));
    });
  }

  #ask(request: ClientRequest, credentials: Credentials, done: (outcome: Outcome) => void): void {
    const session = this.#session;
    const heard = (outcome: Outcome) => {
      if (session === this.#session) done(outcome);
    };
    this.#world.call(this.#random.pick(this.#world.servers), request, heard, credentials);
  }

  #later(body: () => void): void {
    const session = this.#session;
    this.#world.after(this.#random.exponential(pauseMs), () => {
      if (session === this.#session) body();
    });
  }

  get #isOver(): boolean {
    return this.#world.nowMs > this.#world.plan.endMs - quietMs;
  }
}

/** An earlier attempt, which got no answer, has done it. */
const isAlreadySo: ReadonlySet<string> = new Set([
  "userExists",
  "roleExists",
  "userNotFound",
  "roleNotGranted",
]);

function isFailure(outcome: Outcome): outcome is CoreError | "lost" {
  return outcome === "lost" || outcome instanceof CoreError;
}
