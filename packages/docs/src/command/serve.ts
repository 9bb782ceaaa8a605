import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Interrupt, exitCode, printLine, usageError } from "leasehold/cli";
import { isLoopback, parseAddress } from "leasehold/runtime";
import { docsServer } from "../server/docs-server.js";

const builtPages = fileURLToPath(new URL("../../pages", import.meta.url));

/** Serves the pages to browsers on this machine until a signal. */
export async function serveDocs(address: string, pages: string = builtPages): Promise<number> {
  const { host, port } = parseAddress(address);
  if (!isLoopback(host)) throw usageError(`docs serves this machine only, and not ${address}`);
  const server = docsServer(pages, host);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  printLine(`the documentation is at http://${await server.listen({ host, port })}/`);
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
  return exitCode("ok");
}
