import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Interrupt, exitCode, printLine, usageError } from "leasehold/cli";
import { formatAddress, isLoopback, parseAddress } from "leasehold/runtime";

const pageFolder = new URL("../page/", import.meta.url);
/** The page's files, with their types. */
const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/theatre.js": ["theatre.js", "text/javascript; charset=utf-8"],
  "/theatre.css": ["theatre.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
};

/** The run that the page shows first. */
export interface TheatreRun {
  readonly seed: number;
  readonly mode: string | undefined;
  readonly without: readonly string[];
}

/** Serves the theatre to browsers of this machine, until a signal. */
export async function serveTheatre(address: string, run: TheatreRun | undefined): Promise<number> {
  const { host, port } = parseAddress(address);
  if (!isLoopback(host)) throw usageError(`--theatre serves this machine only, and not ${address}`);
  const server = createServer((request, response) => void answer(request, response));
  server.listen(port, host);
  await once(server, "listening").catch((error: unknown) => {
    throw usageError(
      `--theatre ${address}: ${error instanceof Error ? error.message : String(error)}; port 0 takes a free one`,
    );
  });
  const { port: taken } = server.address() as AddressInfo;
  printLine(`the theatre is at http://${formatAddress(host, taken)}/${hashOf(run)}`);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  if (!signal.aborted) await once(signal, "abort");
  server.close();
  server.closeAllConnections();
  return exitCode("ok");
}

function hashOf(run: TheatreRun | undefined): string {
  if (run === undefined) return "#/scene/acquire";
  const { seed, mode, without } = run;
  const words = new URLSearchParams({ seed: String(seed) });
  if (mode !== undefined) words.set("mode", mode);
  if (without.length > 0) words.set("without", without.join(","));
  return `#/run?${words}`;
}

/** The files are public and cannot be changed, so no authentication is needed. */
async function answer({ method, url = "/" }: IncomingMessage, response: ServerResponse): Promise<void> {
  const file = files[url];
  if (file === undefined || (method !== "GET" && method !== "HEAD")) {
    response.writeHead(file === undefined ? 404 : 405, headers).end();
    return;
  }
  const [name, type] = file;
  try {
    const content = await readFile(fileURLToPath(new URL(name, pageFolder)));
    response.writeHead(200, { ...headers, "content-type": type }).end(content);
  } catch {
    response.writeHead(500, headers).end();
  }
}
