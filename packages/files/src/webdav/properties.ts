import { lockSecondsMax, secondsIn } from "./headers.js";
import type { Lock } from "./locks.js";
import { Refusal } from "./refusal.js";
import type { DavEntry } from "./tree.js";
import { type XmlElement, type XmlName, childOf, dav, davNamespace, escaped, named } from "./xml.js";

/** The properties that a PROPFIND requests. */
export type Wanted =
  | { readonly kind: "all" }
  | { readonly kind: "names" }
  | { readonly kind: "some"; readonly names: XmlName[] };

/** Names in one request; each is part of the response for each entry. */
const namesMax = 64;

/** @throws Refusal 400 */
export function wantedOf(body: XmlElement | undefined): Wanted {
  if (body === undefined || childOf(body, "allprop") !== undefined) return { kind: "all" };
  if (childOf(body, "propname") !== undefined) return { kind: "names" };
  const names = childOf(body, "prop")?.children;
  if (body.local !== "propfind" || names === undefined) throw new Refusal(400, "the body is no propfind");
  if (names.length > namesMax) throw new Refusal(400, `more than ${namesMax} properties are asked for`);
  return { kind: "some", names };
}

const supportedLock = ["exclusive", "shared"]
  .map((scope) => dav("lockentry", dav("lockscope", dav(scope)), dav("locktype", dav("write"))))
  .join("");

/** The properties of an entry, as the XML that is in each. */
function propertiesOf(entry: DavEntry, locks: readonly Lock[]): ReadonlyMap<string, string> {
  const isFolder = entry.kind === "folder";
  const properties = new Map([
    ["resourcetype", isFolder ? dav("collection") : ""],
    ["displayname", escaped(entry.path.split("/").at(-1)!)],
    ["getlastmodified", new Date(entry.modifiedMs).toUTCString()],
    ["creationdate", new Date(entry.modifiedMs).toISOString()],
    ["supportedlock", supportedLock],
    ["lockdiscovery", locks.map(activeLock).join("")],
  ]);
  if (isFolder) return properties;
  properties.set("getcontentlength", String(entry.bytes));
  properties.set("getcontenttype", contentType);
  properties.set("getetag", escaped(entry.etag));
  return properties;
}

/** The type of a file is unknown, and left to the client to guess. */
export const contentType = "application/octet-stream";

export function activeLock(lock: Lock): string {
  const seconds = Math.max(0, Math.min(lockSecondsMax, Math.round((lock.endsMs - Date.now()) / 1_000)));
  return dav(
    "activelock",
    dav("locktype", dav("write")),
    dav("lockscope", dav(lock.isShared ? "shared" : "exclusive")),
    dav("depth", lock.isDeep ? "infinity" : "0"),
    lock.owner === "" ? "" : dav("owner", lock.owner),
    dav("timeout", `Second-${seconds}`),
    dav("locktoken", dav("href", escaped(lock.token))),
    dav("lockroot", dav("href", hrefOf(lock.path, false))),
  );
}

/** The URL path of a file or folder. */
export function hrefOf(path: string, isFolder: boolean): string {
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  return `/${encoded}${isFolder && path !== "" ? "/" : ""}`;
}

/** One entry of the answer to a PROPFIND. */
export function propfindResponse(entry: DavEntry, locks: readonly Lock[], wanted: Wanted): string {
  const properties = propertiesOf(entry, locks);
  const href = dav("href", escaped(hrefOf(entry.path, entry.kind === "folder")));
  if (wanted.kind !== "some") {
    const all = [...properties].map(([name, value]) =>
      wanted.kind === "all" ? dav(name, value) : dav(name),
    );
    return dav("response", href, propstat(all, 200));
  }
  const isKnown = ({ namespace, local }: XmlName) => namespace === davNamespace && properties.has(local);
  const found = wanted.names.filter(isKnown).map(({ local }) => dav(local, properties.get(local)!));
  const missing = wanted.names.filter((name) => !isKnown(name)).map(named);
  const parts = [
    ...(found.length > 0 || missing.length === 0 ? [propstat(found, 200)] : []),
    ...(missing.length > 0 ? [propstat(missing, 404)] : []),
  ];
  return dav("response", href, parts.join(""));
}

/** HTTP's preferred form of a date (RFC 9110, 5.6.7). */
const dateForm = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

/**
 * The time of modification that a PROPPATCH sets, ms: `getlastmodified` as a date, or as rclone sends it
 * `lastmodified` in seconds. Undefined if it would change anything else.
 */
export function timeIn(body: XmlElement | undefined): number | undefined {
  const [change, ...others] = body?.children ?? [];
  const [property, ...more] = (change && childOf(change, "prop")?.children) ?? [];
  if (change?.local !== "set" || property?.namespace !== davNamespace) return undefined;
  if (others.length > 0 || more.length > 0) return undefined;
  if (property.local === "lastmodified") return secondsIn(property.text);
  const date = property.text.trim();
  if (property.local !== "getlastmodified" || !dateForm.test(date)) return undefined;
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The response to a PROPPATCH. Of a file only the time of modification can be set. */
export function proppatchResponse(entry: DavEntry, body: XmlElement | undefined, status: 200 | 403): string {
  if (body?.local !== "propertyupdate") throw new Refusal(400, "the body is no propertyupdate");
  const names = body.children.flatMap((change) => childOf(change, "prop")?.children ?? []);
  if (names.length > namesMax) throw new Refusal(400, `more than ${namesMax} properties are to be set`);
  const href = dav("href", escaped(hrefOf(entry.path, entry.kind === "folder")));
  return dav("response", href, propstat(names.map(named), status));
}

const reasons: Readonly<Record<number, string>> = { 200: "OK", 403: "Forbidden", 404: "Not Found" };

function propstat(properties: readonly string[], status: number): string {
  return dav(
    "propstat",
    dav("prop", properties.join("")),
    dav("status", `HTTP/1.1 ${status} ${reasons[status]}`),
  );
}
