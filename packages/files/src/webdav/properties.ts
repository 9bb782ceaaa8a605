import type { AttributeChanges, Quota } from "../types.js";
import { lockSecondsMax, secondsIn } from "./headers.js";
import type { Lock } from "./locks.js";
import { Refusal } from "./refusal.js";
import type { DavEntry } from "./tree.js";
import {
  type XmlElement,
  type XmlName,
  childOf,
  dav,
  davNamespace,
  escaped,
  innerXml,
  named,
} from "./xml.js";

/** The properties requested by a PROPFIND. */
export type Wanted =
  | { readonly kind: "all" }
  | { readonly kind: "names" }
  | { readonly kind: "some"; readonly names: XmlName[] };

/** The most names in one request: each is repeated in the response for every entry. */
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

/** An entry's properties by key, each as an element. */
function propertiesOf(entry: DavEntry, locks: readonly Lock[]): ReadonlyMap<string, Property> {
  const live: [string, string][] = [
    ["resourcetype", entry.kind === "folder" ? dav("collection") : ""],
    ["displayname", escaped(entry.path.split("/").at(-1)!)],
    ["getlastmodified", new Date(entry.modifiedMs).toUTCString()],
    ["creationdate", new Date(entry.modifiedMs).toISOString()],
    ["supportedlock", supportedLock],
    ["lockdiscovery", locks.map(activeLock).join("")],
  ];
  if (entry.kind === "file")
    live.push(
      ["getcontentlength", String(entry.bytes)],
      ["getcontenttype", contentType],
      ["getetag", escaped(entry.etag)],
    );
  const properties = new Map<string, Property>();
  // `allprop` doesn't include these (RFC 4331): clients must ask for them by name.
  for (const [name, value] of quotaProperties(entry))
    properties.set(keyOf(name), { name, element: named(name, value), isAskedFor: true });
  for (const [local, value] of live) {
    const name = { namespace: davNamespace, local };
    properties.set(keyOf(name), { name, element: dav(local, value) });
  }
  for (const [attribute, value] of Object.entries(entry.attributes)) {
    const property = deadProperty(attribute, value);
    if (property !== undefined) properties.set(keyOf(property.name), property);
  }
  return properties;
}

interface Property {
  readonly name: XmlName;
  readonly element: string;
  readonly isAskedFor?: boolean;
}

/** Leasehold's own properties. */
export const ownNamespace = "urn:leasehold:files";
/** The quota of a folder: two numbers, for bytes and for files and folders; `-` means no limit. */
export const quotaName: XmlName = { namespace: ownNamespace, local: "quota" };
/** The number of files and folders in a folder, at any depth. */
export const usedFilesName: XmlName = { namespace: ownNamespace, local: "used-files" };

function quotaProperties({ usage, quota, left }: DavEntry): [XmlName, string][] {
  if (usage === undefined) return [];
  const ofDav = (local: string): XmlName => ({ namespace: davNamespace, local });
  const bytesLeft = left?.bytes ?? null;
  return [
    [ofDav("quota-used-bytes"), String(usage.bytes)],
    ...(bytesLeft === null
      ? []
      : ([[ofDav("quota-available-bytes"), String(bytesLeft)]] as [XmlName, string][])),
    [usedFilesName, String(usage.files)],
    [quotaName, quota === undefined ? "" : `${quota.bytes ?? "-"} ${quota.files ?? "-"}`],
  ];
}

/** Parses a quota from the text of its property. Undefined if the text is invalid. */
function quotaIn(text: string): Quota | undefined {
  const match = /^(\d{1,16}|-) (\d{1,16}|-)$/.exec(text.trim());
  if (match === null) return undefined;
  const [bytes, files] = match.slice(1).map((each) => (each === "-" ? null : Number(each))) as [
    number | null,
    number | null,
  ];
  return { bytes, files };
}

const keyOf = ({ namespace, local }: XmlName): string => `{${namespace}}${local}`;

/**
 * Properties invented by clients are stored as attributes with this prefix. The value is language and XML.
 */
const deadPrefix = "dav:";

function deadProperty(attribute: string, value: string): Property | undefined {
  const match = /^dav:\{(.*)\}([^}]+)$/s.exec(attribute);
  if (match === null) return undefined;
  const name = { namespace: match[1]!, local: match[2]! };
  const at = value.indexOf(" ");
  return { name, element: named(name, value.slice(at + 1), value.slice(0, at)) };
}

/** The type of a file is unknown, so clients have to guess it. */
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

/** One entry in the answer to a PROPFIND. */
export function propfindResponse(entry: DavEntry, locks: readonly Lock[], wanted: Wanted): string {
  const properties = propertiesOf(entry, locks);
  const href = dav("href", escaped(hrefOf(entry.path, entry.kind === "folder")));
  if (wanted.kind !== "some") {
    const all = [...properties.values()].flatMap(({ name, element, isAskedFor = false }) => {
      if (wanted.kind === "names") return [named(name)];
      return isAskedFor ? [] : [element];
    });
    return dav("response", href, propstat(all, 200));
  }
  const found = wanted.names.flatMap((name) => properties.get(keyOf(name))?.element ?? []);
  const missing = wanted.names.filter((name) => !properties.has(keyOf(name))).map((name) => named(name));
  const parts = [
    ...(found.length > 0 || missing.length === 0 ? [propstat(found, 200)] : []),
    ...(missing.length > 0 ? [propstat(missing, 404)] : []),
  ];
  return dav("response", href, parts.join(""));
}

/** HTTP's preferred form of a date (RFC 9110, 5.6.7). */
const dateForm = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

/** The changes in a PROPPATCH, in the order of its body. Either all of them are made or none. */
export interface Patch {
  readonly names: readonly XmlName[];
  /** Properties in the request that clients cannot change. */
  readonly refused: readonly XmlName[];
  readonly modifiedMs: number | undefined;
  readonly attributes: AttributeChanges;
  /**
   * Null removes the quota. It can't be combined with other properties, because it needs a change of its own.
   */
  readonly quota: Quota | null | undefined;
}

/**
 * A PROPPATCH sets a file's modification time: as a date in `getlastmodified`, or in seconds in
 * `lastmodified`, as rclone sends it. Changes of WebDAV's other properties are refused; all other properties
 * are stored as sent.
 * @throws Refusal 400
 */
export function patchOf(entry: DavEntry, body: XmlElement | undefined): Patch {
  if (body?.local !== "propertyupdate") throw new Refusal(400, "the body is no propertyupdate");
  const names: XmlName[] = [];
  const refused: XmlName[] = [];
  const attributes = new Map<string, string | null>();
  let modifiedMs: number | undefined;
  let quota: Quota | null | undefined;
  for (const change of body.children)
    for (const property of childOf(change, "prop")?.children ?? []) {
      if (names.push(property) > namesMax)
        throw new Refusal(400, `more than ${namesMax} properties are to be changed`);
      if (property.namespace === davNamespace) {
        const ms = entry.kind === "file" && change.local === "set" ? timeIn(property) : undefined;
        if (ms === undefined) refused.push(property);
        else modifiedMs = ms;
      } else if (property.namespace === ownNamespace) {
        const wanted = change.local === "set" ? quotaIn(property.text) : null;
        const isQuota = property.local === quotaName.local && entry.kind === "folder" && names.length === 1;
        if (isQuota && wanted !== undefined) quota = wanted;
        else refused.push(property);
      } else {
        const value = `${property.language} ${innerXml(property)}`;
        attributes.set(deadPrefix + keyOf(property), change.local === "set" ? value : null);
      }
    }
  if (quota !== undefined && names.length > 1) refused.push(names[0]!);
  return { names, refused, modifiedMs, attributes: Object.fromEntries(attributes), quota };
}

function timeIn({ local, text }: XmlElement): number | undefined {
  if (local === "lastmodified") return secondsIn(text);
  const date = text.trim();
  if (local !== "getlastmodified" || !dateForm.test(date)) return undefined;
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? undefined : ms;
}

/**
 * The response to a PROPPATCH.
 * @param status for all properties that were not refused individually
 */
export function proppatchResponse(
  entry: DavEntry,
  { names, refused }: Patch,
  status: 200 | 424 | 507,
): string {
  const href = dav("href", escaped(hrefOf(entry.path, entry.kind === "folder")));
  const others = names.filter((name) => !refused.includes(name));
  const parts = [
    ...(others.length > 0 || refused.length === 0
      ? [
          propstat(
            others.map((name) => named(name)),
            status,
          ),
        ]
      : []),
    ...(refused.length > 0
      ? [
          propstat(
            refused.map((name) => named(name)),
            403,
            "cannot-modify-protected-property",
          ),
        ]
      : []),
  ];
  return dav("response", href, parts.join(""));
}

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  403: "Forbidden",
  404: "Not Found",
  424: "Failed Dependency",
  507: "Insufficient Storage",
};

function propstat(properties: readonly string[], status: number, rule?: string): string {
  return dav(
    "propstat",
    dav("prop", properties.join("")),
    dav("status", `HTTP/1.1 ${status} ${reasons[status]}`),
    rule === undefined ? "" : dav("error", dav(rule)),
  );
}
