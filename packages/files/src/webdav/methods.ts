import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { LeaseholdError } from "leasehold/common";
import { conditionsOf, depthOf, lockSecondsOf, modifiedMsOf, rangeOf, tokensIn } from "./headers.js";
import { type Locks, type Touched, folderOf, isWithin } from "./locks.js";
import {
  activeLock,
  contentType,
  hrefOf,
  patchOf,
  propfindResponse,
  proppatchResponse,
  wantedOf,
} from "./properties.js";
import { Refusal } from "./refusal.js";
import type { DavEntry, DavTree } from "./tree.js";
import { type XmlElement, childOf, dav, escaped, openRoot, parseXml } from "./xml.js";

/** A request and the dependencies of all methods. */
export interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly tree: DavTree;
  readonly locks: Locks;
}

type Method = (call: Call) => Promise<void>;

/** With this header, a PUT creates missing folders above its path. */
export const foldersHeader = "leasehold-make-folders";
/** ownCloud's header for the modification time. rclone sends it to servers that it knows to support it. */
const modifiedHeader = "x-oc-mtime";

/** The limit of an XML body, checked before the body is read. */
const xmlBytesMax = 64 * 1024;
/** The limit of a lock's owner. */
const ownerBytesMax = 1_024;
/** The approximate size of the pieces in which a response is sent, in characters. */
const pieceLength = 64 * 1024;

export const methods: Readonly<Record<string, Method>> = {
  OPTIONS: options,
  GET: get,
  HEAD: get,
  PUT: put,
  DELETE: remove,
  MKCOL: makeCollection,
  COPY: copyOrMove,
  MOVE: copyOrMove,
  PROPFIND: propfind,
  PROPPATCH: proppatch,
  LOCK: lock,
  UNLOCK: unlock,
};

function end({ response }: Call, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-length": "0", ...headers }).end();
}

async function options(call: Call): Promise<void> {
  end(call, 200, { dav: "1, 2", allow: Object.keys(methods).join(", "), "ms-author-via": "DAV" });
}

async function found({ tree, path }: Call): Promise<DavEntry> {
  const entry = await tree.find(path);
  if (entry === undefined) throw new Refusal(404, `there is no /${path}`);
  return entry;
}

async function get(call: Call): Promise<void> {
  const { request, response, tree } = call;
  const entry = await found(call);
  if (entry.kind === "folder")
    throw new Refusal(405, "a folder has no content of its own; PROPFIND lists what is in it");
  const common = {
    etag: entry.etag,
    "last-modified": new Date(entry.modifiedMs).toUTCString(),
    "content-type": contentType,
    "accept-ranges": "bytes",
    // A browser must not execute uploaded content.
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox",
  };
  checkMatches(request, entry);
  if (isUnchanged(request, entry)) return void response.writeHead(304, { etag: entry.etag }).end();
  const isWanted = request.headers["if-range"] === undefined || request.headers["if-range"] === entry.etag;
  const range =
    request.method === "GET" && isWanted ? rangeOf(request.headers.range, entry.bytes) : undefined;
  const { start, end: last } = range ?? { start: 0, end: entry.bytes - 1 };
  response.writeHead(range === undefined ? 200 : 206, {
    ...common,
    "content-length": String(last - start + 1),
    ...(range !== undefined && { "content-range": `bytes ${start}-${last}/${entry.bytes}` }),
  });
  if (request.method === "HEAD" || last < start) return void response.end();
  // An error cuts the response short: it has fewer bytes than its declared length, so that clients notice.
  await pipeline(Readable.from(tree.read(entry, start, last - start + 1)), response);
}

async function put(call: Call): Promise<void> {
  const { request, tree, path } = call;
  if (path === "" || request.url!.endsWith("/")) throw new Refusal(405, "a folder cannot be put");
  if (request.headers["content-range"] !== undefined)
    throw new Refusal(400, "a file is put as a whole: Content-Range is not supported");
  // Only conditions need the file's current state; without them the upload itself looks up the name.
  const before = isConditional(request) ? await tree.find(path) : undefined;
  if (before?.kind === "folder") throw new Refusal(405, `/${path} is a folder`);
  if (isConditional(request)) checkMatches(request, before);
  let isNew = true;
  let looked = (_existed: boolean): void => undefined;
  const isMember = new Promise<boolean>((resolve) => (looked = (existed) => resolve(!existed)));
  const unlocked = mustBeUnlocked(call, [{ path, isMember }]);
  // Prevents an unhandled rejection: the upload awaits this only after it has looked up the name.
  unlocked.catch(() => undefined);
  const accept = (existed: boolean): Promise<void> => {
    isNew = !existed;
    looked(existed);
    return unlocked;
  };
  const modifiedMs = modifiedMsOf(request.headers[modifiedHeader] as string | undefined);
  const how = {
    ...(isConditional(request) && (before === undefined ? { isNew: true } : { etag: before.etag })),
    accept,
    makeFolders: request.headers[foldersHeader] !== undefined,
    modifiedMs,
    size: sizeIn(request.headers["content-length"]),
  };
  const writing = tree.write(path, request as AsyncIterable<Uint8Array>, how);
  const after = await inFolder(path, writing).catch(async (error: unknown) => {
    if (error instanceof LeaseholdError && error.code === "FILE_EXISTS")
      if ((await tree.find(path))?.kind === "folder") throw new Refusal(405, `/${path} is a folder`);
    throw error;
  });
  const accepted = { ...(modifiedMs !== undefined && { [modifiedHeader]: "accepted" }) };
  end(call, isNew ? 201 : 204, { etag: after.etag, ...accepted });
}

function sizeIn(header: string | undefined): number | undefined {
  const size = Number(header ?? NaN);
  return Number.isSafeInteger(size) ? size : undefined;
}

async function remove(call: Call): Promise<void> {
  const { request, tree, path, locks } = call;
  if (path === "") throw new Refusal(403, "the root cannot be removed");
  const entry = await found(call);
  if (entry.kind === "folder") depthMustBe(request, "infinity");
  await mustBeUnlocked(call, [{ path, isDeep: entry.kind === "folder", isMember: true }]);
  checkMatches(request, entry);
  await tree.remove(path, isConditional(request) ? entry.etag : undefined);
  await locks.forget(path);
  end(call, 204);
}

async function makeCollection(call: Call): Promise<void> {
  const { request, tree, path } = call;
  if (await hasBody(request)) throw new Refusal(415, "a folder is made without a body");
  if (path === "" || (await tree.find(path)) !== undefined) throw new Refusal(405, `/${path} exists already`);
  await mustBeUnlocked(call, [{ path, isMember: true }]);
  await inFolder(path, tree.makeFolder(path));
  end(call, 201);
}

async function copyOrMove(call: Call): Promise<void> {
  const { request, tree, path, locks } = call;
  const isMove = request.method === "MOVE";
  const to = pathOf(destinationOf(request));
  const entry = await found(call);
  if (path === "" || to === "" || path === to) throw new Refusal(403, "source and destination are the same");
  if (isWithin(path, to) || isWithin(to, path))
    throw new Refusal(403, "one of source and destination is within the other");
  const depth = depthOf(request.headers["depth"] as string | undefined, "infinity");
  if (depth === "1" || (isMove && depth !== "infinity" && entry.kind === "folder"))
    throw new Refusal(400, `a folder cannot be ${isMove ? "moved" : "copied"} with depth ${depth}`);
  const target = await tree.find(to);
  const isDeep = (each: DavEntry | undefined): boolean => each?.kind === "folder";
  const toTarget = { path: to, isDeep: isDeep(target), isMember: target === undefined };
  const fromSource = { path, isDeep: isDeep(entry), isMember: true };
  await mustBeUnlocked(call, isMove ? [fromSource, toTarget] : [toTarget]);
  checkMatches(request, entry);
  const how = {
    deep: depth === "infinity",
    overwrite: request.headers["overwrite"] !== "F",
    etag: isConditional(request) && entry.kind === "file" ? entry.etag : undefined,
  };
  const { existed } = await inFolder(to, tree.transfer(isMove ? "move" : "copy", path, to, how));
  if (isMove) await locks.forget(path);
  end(call, existed ? 204 : 201, { location: hrefOf(to, entry.kind === "folder") });
}

async function propfind(call: Call): Promise<void> {
  const { request, response, tree, path, locks } = call;
  const depth = depthOf(request.headers["depth"] as string | undefined, "infinity");
  if (depth === "infinity")
    throw new Refusal(403, "a whole tree is not listed at once: use depth 0 or 1", "propfind-finite-depth");
  const wanted = wantedOf(await xmlBody(request));
  const entry = await found(call);
  const one = (each: DavEntry): string => propfindResponse(each, locks.over(each.path), wanted);
  const answer = async function* (): AsyncGenerator<string> {
    let piece = openRoot("multistatus") + one(entry);
    if (depth === "1" && entry.kind === "folder")
      for await (const child of tree.children(path)) {
        piece += one(child);
        if (piece.length < pieceLength) continue;
        yield piece;
        piece = "";
      }
    yield `${piece}</D:multistatus>\n`;
  };
  response.writeHead(207, xmlHeaders);
  await pipeline(Readable.from(answer()), response);
}

async function proppatch(call: Call): Promise<void> {
  const body = await xmlBody(call.request);
  const entry = await found(call);
  const patch = patchOf(entry, body);
  await mustBeUnlocked(call, [{ path: call.path }]);
  checkMatches(call.request, entry);
  const etag = isConditional(call.request) && entry.kind === "file" ? entry.etag : undefined;
  const { modifiedMs, attributes, refused, quota } = patch;
  let status: 200 | 424 | 507 = refused.length > 0 ? 424 : 200;
  if (status === 200 && quota !== undefined) await call.tree.setQuota(call.path, quota);
  else if (status === 200)
    await call.tree.touch(call.path, { modifiedMs, attributes, etag }).catch((error: unknown) => {
      // The request has more or longer properties than a file may have.
      if (!(error instanceof LeaseholdError) || error.code !== "INVALID_RANGE") throw error;
      status = 507;
    });
  const response = proppatchResponse(entry, patch, status);
  const text = `${openRoot("multistatus")}${response}</D:multistatus>\n`;
  call.response.writeHead(207, xmlHeaders).end(text);
}

async function lock(call: Call): Promise<void> {
  const { request, response, tree, path, locks } = call;
  tree.mustWrite(path);
  const seconds = lockSecondsOf(request.headers["timeout"] as string | undefined);
  const body = await xmlBody(request);
  if (body === undefined) {
    const tokens = tokensIn(conditionsOf(request.headers["if"] as string | undefined));
    const kept = locks.refresh(path, tokens, seconds);
    return void response.writeHead(200, xmlHeaders).end(lockDiscovery(activeLock(kept)));
  }
  const scope = childOf(body, "lockscope") ?? body;
  const isShared = childOf(scope, "shared") !== undefined;
  if (isShared === (childOf(scope, "exclusive") !== undefined))
    throw new Refusal(422, "a lock is exclusive or shared");
  const depth = depthOf(request.headers["depth"] as string | undefined, "infinity");
  if (depth === "1") throw new Refusal(400, "a lock has depth 0 or infinity");
  const owner = ownerOf(childOf(body, "owner"));
  if (Buffer.byteLength(owner) > ownerBytesMax) throw new Refusal(400, "the owner of the lock is too long");
  const before = await tree.find(path);
  if (before === undefined) {
    await mustBeInFolder(tree, path);
    await mustBeUnlocked(call, [{ path: folderOf(path) }]);
  }
  const taken = await locks.take({ path, owner, isDeep: depth === "infinity", isShared }, seconds);
  try {
    // Locking a missing resource creates an empty file (RFC 4918, 7.3).
    if (before === undefined) await tree.write(path, Readable.from([]), { isNew: true });
  } catch (error) {
    await locks.release(path, taken.token);
    throw error;
  }
  const headers = { ...xmlHeaders, "lock-token": `<${taken.token}>` };
  response.writeHead(before === undefined ? 201 : 200, headers).end(lockDiscovery(activeLock(taken)));
}

async function unlock(call: Call): Promise<void> {
  const token = /^\s*<([^<>]+)>\s*$/.exec(String(call.request.headers["lock-token"] ?? ""))?.[1];
  if (token === undefined) throw new Refusal(400, "the header Lock-Token is missing");
  call.tree.mustWrite(call.path);
  await call.locks.release(call.path, token);
  end(call, 204);
}

const xmlHeaders = { "content-type": "application/xml; charset=utf-8" };

function lockDiscovery(content: string): string {
  return `${openRoot("prop")}${dav("lockdiscovery", content)}</D:prop>\n`;
}

/** The owner is text or a URL; anything else is dropped. */
function ownerOf(owner: XmlElement | undefined): string {
  if (owner === undefined) return "";
  const href = childOf(owner, "href");
  return href === undefined ? escaped(owner.text.trim()) : dav("href", escaped(href.text.trim()));
}

/**
 * Checks the conditions in the header `If`, which apply to every method (RFC 4918, 10.4).
 * @throws Refusal 412
 */
export async function checkConditions({ request, tree, locks, path }: Call): Promise<void> {
  const lists = conditionsOf(request.headers["if"] as string | undefined);
  const holds = async (list: (typeof lists)[number]): Promise<boolean> => {
    const about = list.resource === undefined ? path : pathOf(list.resource);
    const entry = list.conditions.some(({ kind }) => kind === "etag") ? await tree.find(about) : undefined;
    for (const { kind, value, not } of list.conditions) {
      // A condition on a lock that has ended fails: others may have changed what its holder knew.
      const isSo = kind === "token" ? await locks.isHeld(about, value) : entry?.etag === value;
      if (isSo === not) return false;
    }
    return true;
  };
  if (lists.length > 0 && !(await Promise.all(lists.map(holds))).some(Boolean))
    throw new Refusal(412, "a condition of the header If does not hold");
}

/**
 * Checks that the request has the tokens of all locks that would forbid it.
 * @throws Refusal 423
 */
async function mustBeUnlocked(
  { request, locks }: Call,
  changes: readonly (Pick<Touched, "path"> & Partial<Touched>)[],
): Promise<void> {
  const tokens = tokensIn(conditionsOf(request.headers["if"] as string | undefined));
  const all = changes.map((change) => ({ isDeep: false, isMember: false, ...change }));
  await locks.mustBeFree(all, tokens);
}

/**
 * Checks `If-Match` and `If-None-Match`.
 * @throws Refusal 412
 */
function checkMatches(request: IncomingMessage, entry: DavEntry | undefined): void {
  const match = request.headers["if-match"];
  const isAmong = (list: string): boolean =>
    entry !== undefined && (list.trim() === "*" || list.split(",").some((tag) => tag.trim() === entry.etag));
  if (match !== undefined && !isAmong(match)) throw new Refusal(412, "the content has changed");
  const none = request.headers["if-none-match"];
  if (none !== undefined && isAmong(none) && request.method !== "GET" && request.method !== "HEAD")
    throw new Refusal(412, "the resource exists already");
}

/**
 * Whether the change requires that the entry is still as it was when the request's conditions were checked.
 */
function isConditional({ headers }: IncomingMessage): boolean {
  const { "if-match": match, "if-none-match": none, if: lists } = headers;
  return match !== undefined || none !== undefined || /\[/.test(String(lists ?? ""));
}

/** A change of a path whose folder is missing or is a file is a conflict (RFC 4918). */
async function inFolder<T>(path: string, change: Promise<T>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "FILE_NOT_FOUND") throw error;
    throw new Refusal(409, `/${path}: ${error.message}`);
  }
}

function isUnchanged({ headers }: IncomingMessage, { etag, modifiedMs }: DavEntry): boolean {
  const tags = headers["if-none-match"];
  if (tags !== undefined) return tags.trim() === "*" || tags.split(",").some((tag) => tag.trim() === etag);
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return !Number.isNaN(since) && Math.floor(modifiedMs / 1_000) * 1_000 <= since;
}

function depthMustBe({ headers }: IncomingMessage, depth: "infinity"): void {
  if (depthOf(headers["depth"] as string | undefined, depth) !== depth)
    throw new Refusal(400, `a folder is removed with depth ${depth}`);
}

async function mustBeInFolder(tree: DavTree, path: string): Promise<void> {
  const folder = folderOf(path);
  if ((await tree.find(folder))?.kind !== "folder") throw new Refusal(409, `there is no folder /${folder}`);
}

function destinationOf({ headers }: IncomingMessage): string {
  const destination = String(headers["destination"] ?? "");
  if (destination === "") throw new Refusal(400, "the header Destination is missing");
  // The host name is not compared, because a proxy may use another one. A destination on another server is
  // refused.
  const host = /^https?:\/\/([^/]+)/i.exec(destination)?.[1];
  if (host !== undefined && host.toLowerCase() !== headers.host?.toLowerCase())
    throw new Refusal(502, `the destination is on another server than ${headers.host}`);
  return destination;
}

/**
 * The path in a URL of this server.
 * @throws Refusal 400 if it is not the path of a file
 */
export function pathOf(url: string): string {
  const raw = url.replace(/^https?:\/\/[^/]*/i, "").replace(/[?#].*$/s, "");
  let parts: string[];
  try {
    parts = raw.split("/").map(decodeURIComponent);
  } catch {
    throw new Refusal(400, "the path is not encoded as UTF-8 with %");
  }
  const named = parts.filter((part) => part !== "");
  if (named.some((part) => part === "." || part === ".." || /[/\p{Cc}]/u.test(part)))
    throw new Refusal(400, "a path must not contain . or .. or control characters");
  return named.join("/");
}

async function hasBody(request: IncomingMessage): Promise<boolean> {
  for await (const chunk of request) if ((chunk as Buffer).length > 0) return true;
  return false;
}

/** @throws Refusal 413, 400 */
async function xmlBody(request: IncomingMessage): Promise<XmlElement | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > xmlBytesMax) throw new Refusal(413, `a body of XML has at most ${xmlBytesMax} bytes`);
    chunks.push(chunk);
  }
  return bytes === 0 ? undefined : parseXml(Buffer.concat(chunks).toString("utf8"));
}
