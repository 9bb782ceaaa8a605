import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { extname, join, relative, sep } from "node:path";
import { WebServer, hostsOf, send } from "@leasehold/console/web";
import { LeaseholdError } from "leasehold/common";

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webp": "image/webp",
};

/** The policy for files other than pages, and for the theatre's page, which has none of its own. */
const strictPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'";
const frames = "; frame-ancestors 'self'";
/**
 * This frame runs code that a reader has written. It has an opaque origin, also when it is opened directly.
 */
const playground = "/playground/frame.html";

/**
 * Serves a built site. The addresses are those of the files in the folder at this time; no form of path leads
 * elsewhere.
 *
 * @throws LeaseholdError `INVALID_CONFIG` when there is no site
 */
export function docsServer(folder: string, host: string): WebServer {
  const files = filesOf(folder);
  const sandboxed = files.get(playground);
  return new WebServer({
    what: "the documentation",
    access: { hosts: hostsOf(host) },
    policy: strictPolicy + frames,
    async answer({ method }, response, { pathname, search }) {
      if (method !== "GET" && method !== "HEAD")
        return send(response, { status: 405, text: "only GET and HEAD\n" });
      const path = decoded(pathname);
      const file = path === undefined ? undefined : files.get(path);
      if (file !== undefined) return sendFile(response, 200, file, file === sandboxed);
      if (files.has(`${path}/`))
        return send(response, { status: 308, text: "", headers: { location: `${pathname}/${search}` } });
      const missing = files.get("/404");
      if (missing === undefined) return send(response, { status: 404, text: "there is nothing here\n" });
      return sendFile(response, 404, missing);
    },
    failed(response) {
      if (response.headersSent) response.destroy();
      else send(response, { status: 500, text: "the file cannot be read\n" });
    },
  });
}

/**
 * The files by their addresses. A page also has an address without its ending, and an index that of its
 * folder.
 */
function filesOf(folder: string): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const entry of entriesOf(folder)) {
    if (!entry.isFile() || !(extname(entry.name) in types)) continue;
    const file = join(entry.parentPath, entry.name);
    const address = `/${relative(folder, file).split(sep).join("/")}`;
    files.set(address, file);
    if (address.endsWith(".html")) files.set(address.slice(0, -".html".length), file);
    if (entry.name === "index.html") files.set(address.slice(0, -entry.name.length), file);
  }
  return files;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true });
  } catch (cause) {
    throw new LeaseholdError(
      "INVALID_CONFIG",
      `the pages are not in ${folder}; in a clone of the repository, npm run generate -- site makes them`,
      { cause },
    );
  }
}

function decoded(pathname: string): string | undefined {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return undefined;
  }
}

async function sendFile(
  response: ServerResponse,
  status: number,
  file: string,
  isSandboxed = false,
): Promise<void> {
  const content = await readFile(file);
  const type = types[extname(file)];
  if (file.endsWith(".html")) {
    // A page contains its own policy, with the hashes of its scripts, so that any static host enforces it.
    const [, own = strictPolicy] =
      /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(content.toString("utf8")) ?? [];
    const sandbox = isSandboxed ? "; sandbox allow-scripts" : "";
    response.setHeader("content-security-policy", own + sandbox + frames);
  }
  response.writeHead(status, {
    ...(type !== undefined && { "content-type": type }),
    "cache-control": "no-cache",
  });
  response.end(content);
}
