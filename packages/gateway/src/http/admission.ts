import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { LeaseholdError } from "leasehold/common";
import { HttpRefusal } from "../api/problem.js";
import { everything } from "../rights/rights.js";
import type { User, Users } from "../rights/users.js";

/** Who asks where there are no users. */
const anybody: User = { name: "", rights: everything };

/**
 * The user of a request: by the bearer token, or by the certificate that the connection was opened with.
 *
 * @throws LeaseholdError `UNAUTHENTICATED`
 */
export function userOf({ headers, socket }: IncomingMessage, users: Users | undefined): User {
  if (users === undefined) return anybody;
  const { authorization } = headers;
  if (authorization !== undefined) {
    const token = /^Bearer ([!-~]{1,4096})$/i.exec(authorization)?.[1];
    const user = token === undefined ? undefined : users.byToken.get(hashOf(token));
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

const loopbackName = /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::\d+)?$/i;

/**
 * Refuses what a page of another site makes a browser send. Such a page cannot set these headers. It could
 * send by a name of its own that leads here (DNS rebinding), so a gateway without users answers to the names
 * of loopback alone.
 *
 * @throws HttpRefusal
 */
export function refuseOtherSites({ headers }: IncomingMessage, users: Users | undefined): void {
  const { host = "", origin } = headers;
  const site = headers["sec-fetch-site"];
  if (site === "cross-site" || site === "same-site")
    throw new HttpRefusal(403, "the request is another site's");
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
    throw new HttpRefusal(403, "the request is another site's");
  if (users === undefined && !loopbackName.test(host))
    throw new HttpRefusal(421, "a gateway without users is called localhost or 127.0.0.1");
}
