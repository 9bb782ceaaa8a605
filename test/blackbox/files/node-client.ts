import { type Socket, connect } from "node:net";
import type { CallAnswer, CallOutcome, CallRequest, FileCall } from "./calls.js";

const reconnectMs = 50;
/**
 * The most calls in flight to one node. A stopped node answers all of them when it continues, so a higher
 * limit would only prolong that.
 */
const waitingMax = 48;

/** A client's connection to one node, opened again when the node restarts. */
export class NodeClient {
  readonly name: string;
  readonly #path: string;
  readonly #waiting = new Map<number, (outcome: CallOutcome | undefined) => void>();
  #socket: Socket | undefined;
  #isClosed = false;
  #lastId = 0;

  constructor(name: string, path: string) {
    this.name = name;
    this.#path = path;
    this.#connect();
  }

  get takesCalls(): boolean {
    return this.#socket !== undefined && this.#waiting.size < waitingMax;
  }

  /** Resolves with `undefined` if the node is gone and the outcome unknown. */
  ask(call: FileCall): Promise<CallOutcome | undefined> {
    const request: CallRequest = { id: ++this.#lastId, call };
    return new Promise((resolve) => {
      if (this.#socket === undefined) {
        resolve(undefined);
        return;
      }
      this.#waiting.set(request.id, resolve);
      this.#socket.write(`${JSON.stringify(request)}\n`);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.destroy();
  }

  #connect(): void {
    const socket = connect(this.#path, () => {
      this.#socket = socket;
    });
    let rest = "";
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const { id, ...outcome } = JSON.parse(line) as CallAnswer;
        this.#waiting.get(id)?.(outcome);
        this.#waiting.delete(id);
      }
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#socket = undefined;
      for (const resolve of this.#waiting.values()) resolve(undefined);
      this.#waiting.clear();
      if (!this.#isClosed) setTimeout(() => this.#connect(), reconnectMs);
    });
  }
}
