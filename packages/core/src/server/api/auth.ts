import { randomBytes } from "node:crypto";
import type {
  AuthenticateRequest,
  AuthenticateResponse,
  AuthUserAddRequest,
  AuthUserChangePasswordRequest,
} from "leasehold/etcd/gen/etcd/auth_pb.js";
import type { CoreHost } from "../../host/host.js";
import type {
  AuthCommand,
  ClientRequest,
  ClientResponse,
  Credentials,
  UserSecret,
} from "../../replica/types.js";
import { CoreError, refusalFor } from "../../state/errors.js";
import { Passwords } from "../auth/passwords.js";
import type { SignedTokens } from "../auth/signed-tokens.js";
import { type Answer, type Status, statusOf, type UnaryCall, type UnaryHandler } from "../wire/rpc/call.js";
import { clientOf, deadlineOf } from "./calls/calls.js";
import type { CredentialsReader } from "./calls/credentials.js";
import type { UnaryHandlers } from "./calls/header.js";

/** Number of attempts when users, roles or permissions change while a password is checked. */
const triesMax = 8;
const tokenBytes = 18;

/** Requests that become commands unchanged. */
const commands = {
  AuthEnable: "authEnable",
  AuthDisable: "authDisable",
  UserDelete: "userDelete",
  UserGrantRole: "userGrantRole",
  UserRevokeRole: "userRevokeRole",
  RoleAdd: "roleAdd",
  RoleDelete: "roleDelete",
  RoleGrantPermission: "roleGrantPermission",
  RoleRevokePermission: "roleRevokePermission",
} as const satisfies Record<string, AuthCommand["case"]>;

const reads = {
  AuthStatus: "authStatus",
  UserGet: "userGet",
  UserList: "userList",
  RoleGet: "roleGet",
  RoleList: "roleList",
} as const satisfies Record<string, ClientRequest["kind"]>;

/** etcd's Auth service. Passwords end here: the log has only their hashes. */
export class AuthHandlers {
  readonly #host: CoreHost;
  readonly #reader: CredentialsReader;
  readonly #signed: SignedTokens | undefined;
  readonly #electionMs: number;
  readonly #passwords = new Passwords();

  constructor(
    host: CoreHost,
    reader: CredentialsReader,
    signed: SignedTokens | undefined,
    electionMs: number,
  ) {
    this.#host = host;
    this.#reader = reader;
    this.#signed = signed;
    this.#electionMs = electionMs;
  }

  handlers(): UnaryHandlers {
    const changing = Object.entries(commands).map(([method, kind]) => [
      method,
      answering((call) => this.#change(call, { case: kind, value: call.request } as AuthCommand)),
    ]);
    const reading = Object.entries(reads).map(([method, kind]) => [
      method,
      answering((call) => this.ask(call, { kind, request: call.request } as ClientRequest)),
    ]);
    return {
      ...(Object.fromEntries([...changing, ...reading]) as UnaryHandlers),
      Authenticate: answering((call) => this.#authenticate(call, call.request as AuthenticateRequest)),
      UserAdd: answering((call) => this.#addUser(call, call.request as AuthUserAddRequest)),
      UserChangePassword: answering((call) =>
        this.#changePassword(call, call.request as AuthUserChangePasswordRequest),
      ),
    };
  }

  /** The same handlers, restricted to root. */
  rootOnly(handlers: UnaryHandlers, names: readonly string[]): UnaryHandlers {
    const guarded = names.map((name) => {
      const handler = handlers[name]!;
      const guard = async (call: UnaryCall, callback: Answer) => {
        const { refusal } = await outcome(this.ask(call, { kind: "root", request: {} }));
        if (refusal === undefined) handler(call, callback);
        else callback(refusal);
      };
      return [name, (call: UnaryCall, callback: Answer) => void guard(call, callback)];
    });
    return { ...handlers, ...(Object.fromEntries(guarded) as UnaryHandlers) };
  }

  /** Makes a request for a call; rejects with CoreError. */
  async ask(call: UnaryCall, request: ClientRequest): Promise<ClientResponse> {
    return this.#askFor(call, request, await this.#reader.of(call));
  }

  #askFor(
    call: UnaryCall,
    request: ClientRequest,
    credentials: Credentials | undefined,
  ): Promise<ClientResponse> {
    return new Promise((resolve, reject) => {
      const deadlineMs = deadlineOf(call, this.#electionMs);
      const settle = (result: ClientResponse | CoreError) =>
        result instanceof CoreError ? reject(result) : resolve(result);
      const id = this.#host.request(clientOf(call), request, deadlineMs, settle, credentials);
      call.whenOver(() => this.#host.cancel(id));
    });
  }

  #change(call: UnaryCall, request: AuthCommand): Promise<ClientResponse> {
    return this.ask(call, { kind: "auth", request });
  }

  /** Hashes a password only after authorizing the caller. */
  async #secretFor(call: UnaryCall, password: string): Promise<Uint8Array> {
    await this.ask(call, { kind: "root", request: {} });
    return this.#passwords.secretOf(password, clientOf(call));
  }

  async #addUser(call: UnaryCall, { name, options, password }: AuthUserAddRequest): Promise<ClientResponse> {
    const secret = options?.noPassword === true ? new Uint8Array() : await this.#secretFor(call, password);
    return this.#change(call, { case: "userAdd", value: { name, secret } });
  }

  async #changePassword(
    call: UnaryCall,
    { name, password }: AuthUserChangePasswordRequest,
  ): Promise<ClientResponse> {
    const secret = await this.#secretFor(call, password);
    return this.#change(call, { case: "userChangePassword", value: { name, secret } });
  }

  /** The token is issued only if the verified password is still the user's, as in etcd. */
  async #authenticate(call: UnaryCall, { name, password }: AuthenticateRequest): Promise<ClientResponse> {
    for (let tries = 1; ; tries += 1) {
      const asked = { kind: "secret", request: { name } } as const;
      const { isKnown, revision, secret } = (await this.#askFor(call, asked, undefined)) as UserSecret;
      // The time until the answer does not reveal which users exist.
      const isRight = await this.#passwords.isRight(password, secret, clientOf(call));
      if (!isKnown || !isRight) throw new CoreError("authFailed");
      const token = this.#signed === undefined ? randomBytes(tokenBytes).toString("base64url") : "";
      const value = { user: name, token, revision };
      const request: ClientRequest = { kind: "auth", request: { case: "authenticate", value } };
      try {
        const response = (await this.#askFor(call, request, undefined)) as AuthenticateResponse;
        if (this.#signed !== undefined) response.token = await this.#signed.sign(name, revision);
        return response;
      } catch (error) {
        const isOld = error instanceof CoreError && error.failure === "authRevisionOld";
        if (!isOld || tries === triesMax) throw error;
      }
    }
  }
}

/** A handler that sends the promise's answer, or its error. */
export function answering(answer: (call: UnaryCall) => Promise<unknown>): UnaryHandler {
  const settle = async (call: UnaryCall, callback: Answer) => {
    // Refused while decoding (`readRequest` in `methods.ts`).
    const asked = call.request instanceof CoreError ? Promise.reject(call.request) : answer(call);
    const { refusal, response } = await outcome(asked);
    callback(refusal ?? null, response);
  };
  return (call, callback) => void settle(call, callback);
}

interface Outcome {
  readonly response?: unknown;
  readonly refusal?: Status;
}

/** Converts the result for the client. */
async function outcome(answer: Promise<unknown>): Promise<Outcome> {
  try {
    return { response: await answer };
  } catch (error) {
    return { refusal: statusOf(refusalFor(error)) };
  }
}
