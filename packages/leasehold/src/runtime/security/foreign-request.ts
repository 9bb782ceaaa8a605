import type { IncomingHttpHeaders } from "node:http";

/**
 * Why a request is not one of this server's own clients, as far as browsers tell. A page of another site can
 * make a browser send requests here: by a name of the page's own that leads to this address (DNS rebinding),
 * which `Host` shows, or by this server's name, which `Origin` and `Sec-Fetch-Site` show. No page can set
 * these headers, and other programs than browsers send neither of the last two.
 *
 * @param isOwnHost whether clients call this server so; a port may follow the name
 * @param schemes of the server's own pages: before a proxy they may be another than its own
 */
export function foreignRequest(
  headers: IncomingHttpHeaders,
  isOwnHost: (host: string) => boolean,
  schemes: readonly ("http" | "https")[] = ["http", "https"],
): "host" | "site" | undefined {
  const { host = "", origin } = headers;
  if (!isOwnHost(host)) return "host";
  const site = headers["sec-fetch-site"];
  if (site === "cross-site" || site === "same-site") return "site";
  const isOwn = origin === undefined || schemes.some((scheme) => origin === `${scheme}://${host}`);
  return isOwn ? undefined : "site";
}

/** A name of this machine alone, with or without a port. */
export const isLoopbackHost = (host: string): boolean =>
  /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::\d+)?$/i.test(host);
