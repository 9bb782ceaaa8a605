import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { foreignRequest } from "leasehold/runtime";

export interface Access {
  /** The host names by which a browser may reach this server, without the port. */
  readonly hosts: ReadonlySet<string>;
  /** Absent: a client that reaches the address may look. */
  readonly password?: string;
}

export interface Refusal {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The refusal of a request, if it is refused. */
export function refusal(
  headers: IncomingHttpHeaders,
  { hosts, password }: Access,
  isChange: boolean,
): Refusal | undefined {
  const { host = "" } = headers;
  const foreign = foreignRequest(headers, (name) => hosts.has(nameOf(name)));
  if (foreign === "host")
    return {
      status: 421,
      text: `this server is not called ${JSON.stringify(host.slice(0, 80))}: see --host-name\n`,
    };
  if (foreign === "site") return { status: 403, text: "the request is another site's\n" };
  if (isChange && headers["content-type"] !== "application/json")
    return { status: 415, text: "the body must be application/json\n" };
  if (password === undefined || isPassword(headers.authorization, password)) return undefined;
  const challenge = { "www-authenticate": 'Basic realm="Leasehold console", charset="UTF-8"' };
  return { status: 401, text: "a password is needed; any user name will do\n", headers: challenge };
}

/** The host name without the port. */
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
