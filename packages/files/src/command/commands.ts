import { Readable } from "node:stream";
import type { FilesStatus, Quota } from "../types.js";
import { ownNamespace } from "../webdav/properties.js";
import { type XmlElement, childOf, parseXml } from "../webdav/xml.js";
import {
  exitCode,
  CommandFailure,
  usageError,
  describeFailure,
  type Presentation,
  present,
  type Cell,
  type Column,
  tableLines,
} from "leasehold/cli";
import { type Nodes, encodedPath, textOf } from "./nodes.js";
import { shortBytes } from "./progress.js";
import { type FilesOptions, filesSettingsOf, remotePath } from "./settings.js";

interface Entry {
  readonly path: string;
  readonly kind: "file" | "folder";
  /** For a folder: of all files in it, at any depth. */
  readonly bytes?: number;
  /** The number of files and folders in a folder, and its quota. */
  readonly files?: number;
  readonly quota?: Quota;
  readonly modified: string;
  readonly version?: string;
}

const entryColumns: readonly Column[] = [
  { title: "SIZE", align: "right" },
  { title: "CHANGED" },
  { title: "NAME", shrinks: true },
];

/** `leasehold files ls [FOLDER]`. */
export async function list(folder: string, options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const path = folder.replaceAll(/^\/+|\/+$/g, "");
  const [self, ...children] = await entriesOf(nodes, path, "1");
  present(output, presentEntries(self?.kind === "file" ? [self] : children, path));
  return exitCode("ok");
}

export function presentEntries(entries: readonly Entry[], folder: string): Presentation {
  return {
    document: entries,
    table: (paint, widthMax) => {
      if (entries.length === 0) return [folder === "" ? "there are no files yet" : `${folder} is empty`];
      const rows = entries.map(({ path, kind, bytes, modified }): Cell[] => [
        { text: shortBytes(bytes ?? 0) },
        { text: localTime(modified), style: "dim" },
        kind === "folder"
          ? { text: `${nameIn(path, folder)}/`, style: "blue" }
          : { text: nameIn(path, folder), style: "bold" },
      ]);
      return tableLines(entryColumns, rows, paint, widthMax);
    },
  };
}

/** `leasehold files stat PATH`. */
export async function showOne(remote: string, options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const [entry] = await entriesOf(nodes, remote.replaceAll(/^\/+|\/+$/g, ""), "0");
  if (entry === undefined) throw new CommandFailure("missing", `there is no /${remote}`);
  present(output, {
    document: entry,
    table: (paint) =>
      [
        ["path", entry.path],
        ["kind", entry.kind],
        ...(entry.kind === "file"
          ? [
              ["size", `${shortBytes(entry.bytes ?? 0)} (${entry.bytes} bytes)`],
              ["version", entry.version ?? ""],
            ]
          : folderLines(entry)),
        ["changed", localTime(entry.modified)],
      ].map(([name, text]) => `${paint("dim", name!.padEnd(9))}${text}`),
  });
  return exitCode("ok");
}

function folderLines({ bytes = 0, files = 0, quota }: Entry): string[][] {
  const of = (most: string | undefined): string => (most === undefined ? "" : ` of ${most}`);
  return [
    ["bytes", shortBytes(bytes) + of(quota?.bytes?.toString() && shortBytes(quota.bytes!))],
    ["files", String(files) + of(quota?.files?.toString())],
  ];
}

export interface QuotaOptions extends FilesOptions {
  readonly bytes?: number;
  readonly files?: number;
  readonly none?: boolean;
}

/** `leasehold files quota FOLDER`: sets or removes the quota, and prints it with the use. */
export async function quota(remote: string, options: QuotaOptions): Promise<number> {
  const { nodes } = filesSettingsOf(options);
  const { bytes, files, none = false } = options;
  const isSet = bytes !== undefined || files !== undefined;
  if (none && isSet) throw usageError("--none removes the quota, and takes no --bytes and no --files");
  if (isSet || none) {
    const property = `<L:quota>${bytes ?? "-"} ${files ?? "-"}</L:quota>`;
    const update = none
      ? `<D:remove><D:prop><L:quota/></D:prop></D:remove>`
      : `<D:set><D:prop>${property}</D:prop></D:set>`;
    const body = `<D:propertyupdate xmlns:D="DAV:" xmlns:L="${ownNamespace}">${update}</D:propertyupdate>`;
    const path = remotePath(remote.replace(/\/+$/, ""));
    const answer = await nodes.text({ method: "PROPPATCH", path, body: bodyOf(body) });
    if (!/HTTP\/1\.1 200/.test(answer)) throw new CommandFailure("usage", `/${path} is no folder`);
  }
  return showOne(remote, options);
}

/** `leasehold files snapshot create FOLDER NAME`. */
export async function createSnapshot(folder: string, name: string, options: FilesOptions): Promise<number> {
  const { nodes } = filesSettingsOf(options);
  (await nodes.ask({ method: "MKCOL", path: snapshotOf(folder, name) })).resume();
  return exitCode("ok");
}

/** `leasehold files snapshot ls FOLDER`. */
export async function listSnapshots(folder: string, options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const [self] = await entriesOf(nodes, folder.replaceAll(/^\/+|\/+$/g, ""), "0");
  const path = snapshotOf(folder, "").slice(0, -1);
  if (self?.kind !== "folder") throw new CommandFailure("missing", `there is no folder /${folder}`);
  const [, ...found] = await entriesOf(nodes, path, "1").catch((error: unknown) => {
    // A folder has no snapshots folder before its first snapshot.
    if (error instanceof CommandFailure && error.code === "MISSING") return [];
    throw error;
  });
  present(output, presentEntries(found, path));
  return exitCode("ok");
}

/** `leasehold files snapshot remove FOLDER NAME`. */
export async function removeSnapshot(folder: string, name: string, options: FilesOptions): Promise<number> {
  const { nodes } = filesSettingsOf(options);
  (await nodes.ask({ method: "DELETE", path: snapshotOf(folder, name) })).resume();
  return exitCode("ok");
}

function snapshotOf(folder: string, name: string): string {
  if (name.includes("/")) throw usageError("the name of a snapshot has no slash");
  return `${folder.replaceAll(/^\/+|\/+$/g, "")}/.snapshots/${name}`.replace(/^\//, "");
}

/** `leasehold files rm PATH…`. */
export async function remove(
  remotes: readonly string[],
  options: FilesOptions & { readonly recursive?: boolean },
): Promise<number> {
  const { nodes } = filesSettingsOf(options);
  for (const remote of remotes) {
    const path = remotePath(remote.replace(/\/+$/, ""));
    const [entry] = await entriesOf(nodes, path, "0");
    if (entry?.kind === "folder" && options.recursive !== true)
      throw usageError(`${path} is a folder: -r removes it with all that is in it`);
    (await nodes.ask({ method: "DELETE", path })).resume();
  }
  return exitCode("ok");
}

/** `leasehold files mv FROM TO`. */
export async function move(from: string, to: string, options: FilesOptions): Promise<number> {
  const { nodes } = filesSettingsOf(options);
  const path = remotePath(from.replace(/\/+$/, ""));
  const target = remotePath(to.endsWith("/") ? to + path.split("/").at(-1)! : to);
  const headers = { destination: encodedPath(target) };
  (await nodes.ask({ method: "MOVE", path, headers })).resume();
  return exitCode("ok");
}

export const nodeColumns: readonly Column[] = [
  { title: "NODE" },
  { title: "ADDRESS", shrinks: true },
  { title: "STATE", shrinks: true },
  { title: "PRIMARIES", align: "right" },
  { title: "SEES" },
  { title: "REPAIRED", align: "right" },
];

/** `leasehold files status`. */
export async function status(options: FilesOptions): Promise<number> {
  const { nodes, output } = filesSettingsOf(options);
  const found = await Promise.all(
    nodes.urls.map(async (url) => {
      try {
        const text = await textOf(await nodes.askOne(url, { method: "GET", path: "" }));
        return { address: url.host, reachable: true as const, status: JSON.parse(text) as FilesStatus };
      } catch (error) {
        return { address: url.host, reachable: false as const, reason: describeFailure(error).message };
      }
    }),
  );
  present(output, {
    document: found,
    table: (paint, widthMax) => tableLines(nodeColumns, found.map(nodeRow), paint, widthMax),
  });
  const reached = found.filter(({ reachable }) => reachable).length;
  return exitCode(reached * 2 > found.length ? "ok" : "unavailable");
}

export type Found =
  | { readonly address: string; readonly reachable: true; readonly status: FilesStatus }
  | { readonly address: string; readonly reachable: false; readonly reason: string };

export function nodeRow(found: Found): Cell[] {
  if (!found.reachable)
    return [
      { text: "-" },
      { text: found.address },
      { text: found.reason.replace(/^unexpected: (?:Error: )?/, ""), style: "red" },
      ...["-", "-", "-"].map((text) => ({ text })),
    ];
  const { node, state, rebuilding, peers, primaries, counters } = found.status;
  const left = rebuilding === undefined ? "" : `, ${rebuilding.left} of ${rebuilding.total} files left`;
  const seen = peers.filter(({ reachable }) => reachable).map((peer) => peer.node);
  const behind = peers.filter((peer) => peer.behind > 0).map((peer) => `${peer.node} lacks ${peer.behind}`);
  return [
    { text: node, style: "bold" },
    { text: found.address },
    { text: state + left, style: state === "serving" ? "green" : "yellow" },
    { text: String(primaries.length) },
    { text: [seen.join(" ") || "nobody", ...behind].join(", ") },
    { text: String(counters.repaired) },
  ];
}

const wantedProperties = [
  "resourcetype",
  "getlastmodified",
  "getetag",
  "getcontentlength",
  "quota-used-bytes",
]
  .map((name) => `<D:${name}/>`)
  .concat("<L:used-files/>", "<L:quota/>")
  .join("");
const propfindBody = `<D:propfind xmlns:D="DAV:" xmlns:L="${ownNamespace}"><D:prop>${wantedProperties}</D:prop></D:propfind>`;

function bodyOf(text: string) {
  return { bytes: Buffer.byteLength(text), open: () => Readable.from([text]), isRepeatable: true };
}

async function entriesOf(nodes: Nodes, path: string, depth: "0" | "1"): Promise<Entry[]> {
  const body = bodyOf(propfindBody);
  const answer = parseXml(await nodes.text({ method: "PROPFIND", path, headers: { depth }, body }));
  return answer.children.filter(({ local }) => local === "response").map(entryOf);
}

function entryOf(response: XmlElement): Entry {
  const href = childOf(response, "href")?.text ?? "";
  const properties = childOf(childOf(response, "propstat") ?? response, "prop") ?? response;
  const textIn = (name: string): string => childOf(properties, name)?.text ?? "";
  const isFolder = childOf(childOf(properties, "resourcetype") ?? properties, "collection") !== undefined;
  const path = decodeURIComponent(href).replaceAll(/^\/|\/$/g, "");
  const modified = new Date(textIn("getlastmodified")).toISOString();
  if (isFolder) {
    const own = (name: string) =>
      properties.children.find(({ namespace, local }) => namespace === ownNamespace && local === name)?.text;
    const limits = (own("quota") ?? "").split(" ").map((text) => (/^\d/.test(text) ? Number(text) : null));
    const [most = null, files = null] = limits;
    const isLimited = most !== null || files !== null;
    return {
      path,
      kind: "folder",
      bytes: Number(textIn("quota-used-bytes")),
      files: Number(own("used-files") ?? 0),
      ...(isLimited && { quota: { bytes: most, files } }),
      modified,
    };
  }
  const version = textIn("getetag").replaceAll('"', "");
  return { path, kind: "file", bytes: Number(textIn("getcontentlength")), modified, version };
}

function nameIn(path: string, folder: string): string {
  return path === folder || folder === "" ? path : path.slice(folder.length + 1);
}

/** Formatted as `2026-11-22 21:15:07`, in local time. */
function localTime(iso: string): string {
  const date = new Date(iso);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19).replace("T", " ");
}
