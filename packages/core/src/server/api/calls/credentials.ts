import type { Credentials } from "../../../replica/types.js";
import type { SignedTokens } from "../../auth/signed-tokens.js";
import type { UnaryCall } from "../../wire/rpc/call.js";

type Call = Pick<UnaryCall, "metadata" | "peer">;

/** Reads a call's credentials: its token, or the certificate of its connection. */
export class CredentialsReader {
  readonly #signed: SignedTokens | undefined;
  readonly #byCertificate: boolean;

  /**
   * @param signed set if tokens are signed
   * @param byCertificate whether clients must show a certificate, whose common name is their user
   */
  constructor(signed: SignedTokens | undefined, byCertificate: boolean) {
    this.#signed = signed;
    this.#byCertificate = byCertificate;
  }

  /** Synchronous where possible; rejects with CoreError `invalidAuthToken`. */
  of(call: Call): Credentials | undefined | Promise<Credentials> {
    // Clients of the JSON API send `authorization`.
    const token = call.metadata.get("token")[0] ?? call.metadata.get("authorization")[0];
    if (token !== undefined)
      return this.#signed === undefined ? { kind: "token", token } : this.#signed.read(token);
    return this.#byCertificate ? certified(call) : undefined;
  }
}

function certified({ peer: { commonName: user } }: Call): Credentials | undefined {
  return user === "" ? undefined : { kind: "user", user };
}
