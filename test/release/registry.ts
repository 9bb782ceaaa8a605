import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

interface Packument {
  readonly name: string;
  readonly "dist-tags": Record<string, string>;
  readonly versions: Record<string, Record<string, unknown>>;
  readonly _attachments?: Record<string, { readonly data: string }>;
}

/** A registry in memory, with what npm needs to publish and to look up packages. */
export class Registry {
  /** The published packages, in the order of their publication. */
  readonly published: Packument[] = [];
  /** A package whose next publication is refused. */
  refuses: string | undefined;
  readonly #server = createServer((request, response) => {
    const name = decodeURIComponent(request.url!.slice(1));
    const known = this.published.find((each) => each.name === name);
    if (request.method !== "PUT") {
      response.writeHead(known === undefined ? 404 : 200).end(JSON.stringify(known ?? {}));
      return;
    }
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      if (this.refuses === name) {
        this.refuses = undefined;
        response.writeHead(403).end("{}");
        return;
      }
      this.published.push(JSON.parse(body) as Packument);
      response.writeHead(201).end("{}");
    });
  });

  /** Returns its address, in the form of npm's settings. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
