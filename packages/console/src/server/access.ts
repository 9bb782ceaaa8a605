import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface Access {
  /** The names by which a browser may call this server, without the port. */
  readonly hosts: ReadonlySet<string>;
  /** Absent: whoever reaches the address may look. */
  readonly password?: string;
}

export interface Refusal {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Whether a request is refused. A page of another site may make the browser send requests here, by a name of
 * its own that leads to this address (DNS rebinding) or with this server's name: the first is seen by `Host`,
 * the second by `Origin` and `Sec-Fetch-Site`, which no page can set.
 */
export function refusal(
  headers: IncomingHttpHeaders,
  { hosts, password }: Access,
  isChange: boolean,
): Refusal | undefined {
  const { host = "", origin } = headers;
  if (!hosts.has(nameOf(host)))
    return {
      status: 421,
      text: `this server is not called ${JSON.stringify(host.slice(0, 80))}: see --host-name\n`,
    };
  const site = headers["sec-fetch-site"];
  if (site === "cross-site" || site === "same-site")
    return { status: 403, text: "the request is another site's\n" };
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
    return { status: 403, text: "the request is another site's\n" };
  if (isChange && headers["content-type"] !== "application/json")
    return { status: 415, text: "the body must be application/json\n" };
  if (password === undefined || isPassword(headers.authorization, password)) return undefined;
  const challenge = { "www-authenticate": 'Basic realm="Leasehold console", charset="UTF-8"' };
  return { status: 401, text: "a password is needed; any user name will do\n", headers: challenge };
}

/** Without the port. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, "");
}

function isPassword(authorization: string | undefined, password: string): boolean {
  const [, encoded = ""] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(authorization ?? "") ?? [];
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const given = text.slice(text.indexOf(":") + 1);
  return timingSafeEqual(digest(given), digest(password));
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
