import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { LeaseholdError } from "leasehold/common";
import { foreignRequest, isLoopbackHost } from "leasehold/runtime";
import { HttpRefusal } from "../api/problem.js";
import { everything } from "../rights/rights.js";
import type { User, Users } from "../rights/users.js";
import { type TokenIssuer, isWebToken } from "./token-issuer.js";

/** The one user of a gateway without users. */
const anybody: User = { name: "", rights: everything };

/**
 * The user of a request, from the bearer token or the certificate of the connection.
 *
 * @param issuer of JSON Web Tokens, if one is trusted
 * @throws LeaseholdError `UNAUTHENTICATED`, and `UNREACHABLE` if the issuer's keys are unavailable
 */
export async function userOf(
  { headers, socket }: IncomingMessage,
  users: Users | undefined,
  issuer: TokenIssuer | undefined,
): Promise<User> {
  if (users === undefined) return anybody;
  const { authorization } = headers;
  if (authorization !== undefined) {
    const token = /^Bearer ([!-~]{1,8192})$/i.exec(authorization)?.[1] ?? "";
    const isWeb = issuer !== undefined && isWebToken(token);
    const user = isWeb
      ? users.bySubject.get(await issuer.subjectOf(token))
      : users.byToken.get(hashOf(token));
    if (user !== undefined) return user;
    throw new LeaseholdError("UNAUTHENTICATED", "the gateway does not know this token");
  }
  const subject =
    socket instanceof TLSSocket && socket.authorized ? socket.getPeerCertificate().subject : undefined;
  const user = typeof subject?.CN === "string" ? users.byCertificate.get(subject.CN) : undefined;
  if (user !== undefined) return user;
  const why = "a request needs `Authorization: Bearer TOKEN`, or a certificate of a user";
  throw new LeaseholdError("UNAUTHENTICATED", why);
}

export const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

/**
 * Refuses requests that a page of another site makes a browser send. A gateway without users accepts only the
 * host names of loopback.
 *
 * @throws HttpRefusal
 */
export function refuseForeign({ headers }: IncomingMessage, users: Users | undefined): void {
  const foreign = foreignRequest(headers, (host) => users !== undefined || isLoopbackHost(host));
  if (foreign === "host")
    throw new HttpRefusal(421, "a gateway without users is called localhost or 127.0.0.1");
  if (foreign === "site") throw new HttpRefusal(403, "the request is another site's");
}
