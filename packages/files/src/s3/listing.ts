import type { Entry, Files, FileStat } from "../types.js";
import { S3Error } from "./errors.js";
import { encodeStrictly } from "./keys.js";
import { etagOf } from "./metadata.js";
import { documentOf, elements, timeText, Xml } from "./xml.js";

const keysMax = 1_000;

interface Listed {
  /** Keys and common prefixes, in order. */
  readonly items: readonly (
    | { readonly key: string; readonly stat: FileStat }
    | { readonly prefix: string }
  )[];
  /** The list continues after this key or prefix. */
  readonly next: string | undefined;
}

/** The parameters of a list. */
interface Terms {
  readonly bucket: string;
  readonly prefix: string;
  readonly delimiter: string;
  readonly after: string;
  readonly limit: number;
}

/** A bucket's keys with a prefix, in the order of the names. The delimiter is `/` or none. */
async function listKeys(files: Files, terms: Terms): Promise<Listed> {
  const { limit } = terms;
  if (limit === 0) return { items: [], next: undefined };
  const pages = terms.delimiter === "" ? flatPages(files, terms) : folderPages(files, terms);
  const items: Listed["items"][number][] = [];
  for await (const { found, hasMore } of pages) {
    for (const [at, item] of found.entries()) {
      items.push(item);
      const isLast = at === found.length - 1 && !hasMore;
      if (items.length === limit)
        return { items, next: isLast ? undefined : "key" in item ? item.key : item.prefix };
    }
    if (!hasMore) break;
  }
  return { items, next: undefined };
}

interface Page {
  readonly found: Listed["items"];
  readonly hasMore: boolean;
}

async function* flatPages(files: Files, { bucket, prefix, after, limit }: Terms): AsyncGenerator<Page> {
  const root = `${bucket}/`;
  for (let from = after === "" ? "" : root + after; ;) {
    const page = await files.list(root + prefix, { after: from, limit });
    const found = page.files.map((stat) => ({ key: stat.path.slice(root.length), stat }));
    yield { found, hasMore: page.next !== undefined };
    if (page.next === undefined) return;
    from = page.next;
  }
}

async function* folderPages(files: Files, { bucket, prefix, after, limit }: Terms): AsyncGenerator<Page> {
  const cut = prefix.lastIndexOf("/") + 1;
  const [above, begin] = [prefix.slice(0, cut), prefix.slice(cut)];
  const folder = above === "" ? bucket : `${bucket}/${above.slice(0, -1)}`;
  const isPast = after > above && !after.startsWith(above);
  if (isPast || (await files.entry(folder))?.kind !== "folder") return;
  for (let from = placeAfter(after.startsWith(above) ? after.slice(above.length) : ""); ;) {
    const page = await files.children(folder, { prefix: begin, after: from, limit });
    yield {
      found: page.entries.map((entry) => itemOf(entry, above)),
      hasMore: page.next !== undefined,
    };
    if (page.next === undefined) return;
    from = page.next;
  }
}

/** Where a folder's list continues after a key: the folder that contains the key may have more. */
function placeAfter(rest: string): string {
  const slash = rest.indexOf("/");
  return slash < 0 || slash === rest.length - 1 ? rest : rest.slice(0, slash);
}

function itemOf(entry: Entry, above: string): Listed["items"][number] {
  const name = entry.path.slice(entry.path.lastIndexOf("/") + 1);
  return entry.kind === "folder" ? { prefix: `${above}${name}/` } : { key: above + name, stat: entry };
}

/** The answer to ListObjectsV2, or ListObjects without list-type=2. @throws S3Error `InvalidArgument` */
export async function listObjects(
  files: Files,
  bucket: string,
  query: ReadonlyMap<string, string>,
): Promise<string> {
  const isSecond = query.get("list-type") === "2";
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const encoding = query.get("encoding-type");
  const token = query.get("continuation-token");
  const limit = limitOf(query.get("max-keys"), "max-keys");
  if (delimiter !== "" && delimiter !== "/") throw new S3Error("NotImplemented", "the only delimiter is /");
  if (encoding !== undefined && encoding !== "url")
    throw new S3Error("InvalidArgument", "the only encoding-type is url");
  const start = query.get(isSecond ? "start-after" : "marker") ?? "";
  const after = isSecond && token !== undefined ? keyInToken(token) : start;
  const isKey = !`${bucket}/${prefix}`
    .split("/")
    .slice(0, -1)
    .some((part) => ["", ".", ".."].includes(part));
  const { items, next } = isKey
    ? await listKeys(files, { bucket, prefix, delimiter, after, limit })
    : { items: [], next: undefined };
  const text = (key: string): string =>
    encoding === "url" ? key.split("/").map(encodeStrictly).join("/") : key;
  const contents = items.map((item) =>
    "key" in item
      ? elements([["Contents", objectElements(text(item.key), item.stat)]])
      : elements([["CommonPrefixes", elements([["Prefix", text(item.prefix)]])]]),
  );
  const head = elements([
    ["Name", bucket],
    ["Prefix", text(prefix)],
    ["Delimiter", delimiter === "" ? undefined : text(delimiter)],
    ["MaxKeys", limit],
    ["EncodingType", encoding],
    ["IsTruncated", next !== undefined],
    ...(isSecond
      ? ([
          ["KeyCount", items.length],
          ["ContinuationToken", token],
          ["StartAfter", start === "" ? undefined : text(start)],
          ["NextContinuationToken", next === undefined ? undefined : tokenOf(next)],
        ] as const)
      : ([
          ["Marker", text(start)],
          ["NextMarker", next === undefined ? undefined : text(next)],
        ] as const)),
  ]);
  return documentOf("ListBucketResult", new Xml(head.text + contents.map((each) => each.text).join("")));
}

function objectElements(key: string, stat: FileStat): Xml {
  return elements([
    ["Key", key],
    ["LastModified", timeText(stat.modifiedMs)],
    ["ETag", etagOf(stat)],
    ["Size", stat.size],
    ["StorageClass", "STANDARD"],
  ]);
}

/** @throws S3Error `InvalidArgument` */
export function limitOf(text: string | undefined, name: string): number {
  if (text === undefined || text === "") return keysMax;
  if (!/^\d{1,10}$/.test(text)) throw new S3Error("InvalidArgument", `${name} is no number`);
  return Math.min(keysMax, Number(text));
}

function tokenOf(key: string): string {
  return Buffer.from(key).toString("base64url");
}

function keyInToken(token: string): string {
  if (!/^[\w-]*$/.test(token) || token.length > 4_096)
    throw new S3Error("InvalidArgument", "the continuation token is not one of this server");
  return Buffer.from(token, "base64url").toString("utf8");
}
