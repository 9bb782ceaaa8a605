import type { ServerUnaryCall } from "@grpc/grpc-js";
import type { Credentials } from "../../replica/types.js";
import type { SignedTokens } from "../auth/signed-tokens.js";
import { commonNameOf } from "./calls.js";

type Call = Pick<ServerUnaryCall<unknown, unknown>, "getAuthContext" | "getPeer" | "metadata">;

/** Says for whom a call is: by the token that it brings, or by its connection's certificate. */
export class CredentialsReader {
  readonly #signed: SignedTokens | undefined;
  readonly #byCertificate: boolean;

  /**
   * @param signed if tokens are of that kind
   * @param byCertificate clients have to show a certificate: its common name is a user's
   */
  constructor(signed: SignedTokens | undefined, byCertificate: boolean) {
    this.#signed = signed;
    this.#byCertificate = byCertificate;
  }

  /** At once where that can be; rejects with CoreError `invalidAuthToken`. */
  of(call: Call): Credentials | undefined | Promise<Credentials> {
    // Clients of the JSON API send the latter.
    const token = call.metadata.get("token")[0] ?? call.metadata.get("authorization")[0];
    if (token !== undefined)
      return this.#signed === undefined
        ? { kind: "token", token: String(token) }
        : this.#signed.read(String(token));
    return this.#byCertificate ? certified(call) : undefined;
  }
}

function certified(call: Call): Credentials | undefined {
  const user = commonNameOf(call);
  return user === "" ? undefined : { kind: "user", user };
}
