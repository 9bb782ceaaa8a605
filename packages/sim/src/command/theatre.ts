import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { WebServer, hostsOf, send } from "@leasehold/console/web";
import { Interrupt, exitCode, printLine, usageError } from "leasehold/cli";
import { isLoopback, parseAddress } from "leasehold/runtime";

const pageFolder = new URL("../page/", import.meta.url);
/** The page's files, with their types. */
const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/theatre.js": ["theatre.js", "text/javascript; charset=utf-8"],
  "/theatre.css": ["theatre.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
  const server = theatreServer(host);
  const taken = await server.listen({ host, port }).catch((error: unknown) => {
    throw usageError(`${error instanceof Error ? error.message : String(error)}; port 0 takes a free one`);
  });
  printLine(`the theatre is at http://${taken}/${hashOf(run)}`);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
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
function theatreServer(host: string): WebServer {
  return new WebServer({
    what: "the theatre",
    access: { hosts: hostsOf(host) },
    policy,
    async answer({ method }, response, { pathname }) {
      const file = files[pathname];
      if (file === undefined) return send(response, { status: 404, text: "there is nothing here\n" });
      if (method !== "GET" && method !== "HEAD")
        return send(response, { status: 405, text: "only GET and HEAD\n" });
      const [name, type] = file;
      const content = await readFile(fileURLToPath(new URL(name, pageFolder)));
      response.writeHead(200, { "content-type": type, "cache-control": "no-cache" }).end(content);
    },
    failed(response) {
      if (response.headersSent) response.destroy();
      else send(response, { status: 500, text: "the file cannot be read\n" });
    },
  });
}
