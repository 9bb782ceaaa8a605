import type { IncomingHttpHeaders } from "node:http";

/**
 * Why a request does not come from this server's own pages or clients, according to the browser's headers. A
 * page of another site can make a browser send requests here: through the page's own host name, which
 * resolves to this address (DNS rebinding, visible in `Host`), or through this server's name (visible in
 * `Origin` and `Sec-Fetch-Site`). No page can set these headers, and programs other than browsers send
 * neither of the last two.
 *
 * @param isOwnHost whether clients use this name for this server; a port may follow it
 * @param schemes the schemes of the server's own pages, which differ from the server's if a proxy is in front
 *   of it
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

/** Whether the name means only this machine. It may have a port. */
export const isLoopbackHost = (host: string): boolean =>
  /^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::\d+)?$/i.test(host);
