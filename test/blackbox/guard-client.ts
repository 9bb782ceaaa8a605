import { type Socket, connect } from "node:net";
import type { TenureId } from "../../packages/leasehold/src/testing/history/journals/format.js";
import type { GuardAnswer, GuardRequest } from "./guard.js";

/** A holder's connection to the guard of the protected resources. */
export class GuardClient {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (answer: GuardAnswer["result"] | "unknown") => void>();
  #lastId = 0;

  constructor(path: string) {
    this.#socket = connect(path);
    this.#socket.setEncoding("utf8");
    let rest = "";
    this.#socket.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#answered(JSON.parse(line) as GuardAnswer);
    });
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => {
      for (const answer of this.#waiting.values()) answer("unknown");
      this.#waiting.clear();
    });
  }

  /** Performs one operation under this tenure's token. Resolves with `unknown` if the guard is gone. */
  operate({ resource, token, mode }: TenureId): Promise<GuardAnswer["result"] | "unknown"> {
    const request: GuardRequest = { id: ++this.#lastId, resource, token: String(token), mode };
    return new Promise((resolve) => {
      if (this.#socket.destroyed) {
        resolve("unknown");
        return;
      }
      this.#waiting.set(request.id, resolve);
      this.#socket.write(`${JSON.stringify(request)}\n`);
    });
  }

  #answered({ id, result }: GuardAnswer): void {
    this.#waiting.get(id)?.(result);
    this.#waiting.delete(id);
  }

  close(): void {
    this.#socket.destroy();
  }
}
