import type { Socket } from "node:net";
import { type Timer, type Timers, isRecord, LeaseholdError } from "leasehold/common";
import type { AuthFault, Proof } from "leasehold/runtime";
import { type Answerer, type Asks, type Kind, noBytes } from "../protocol/messages.js";
import { FileUncertainError } from "../uncertain.js";
import type { ErrorHead } from "./channel.js";
import { type Frame, FrameReader, writeFrame } from "./frames.js";
import { admitted, authError, refusal, type Self, welcome } from "./introduction.js";

/** Requests in progress on one connection. At this limit nothing more is read. */
const workingMax = 64;
/** Timeout for the hello on an accepted connection, ms. */
const helloMsMax = 5_000;
/** How long a refused peer has to read the reason, ms. */
const lingerMs = 500;

export interface ConnectionPorts {
  readonly self: Self;
  readonly timers: Timers;
  readonly answerer: Answerer;
  /** Called when the peer is authenticated and may send requests. */
  admitted(): void;
  refused(why: LeaseholdError): void;
}

/** An accepted connection. The introduction comes first, then requests. */
export class Connection {
  readonly #ports: ConnectionPorts;
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  #proof: Proof | undefined;
  #timer: Timer;
  #node: string | undefined;
  #working = 0;

  constructor(ports: ConnectionPorts, socket: Socket) {
    this.#ports = ports;
    this.#socket = socket;
    this.#timer = ports.timers.after(helloMsMax, () => socket.destroy());
    socket.on("close", () => this.#timer.cancel());
  }

  /** Nothing is read from an unauthenticated peer. */
  begin(proof: Proof | AuthFault): void {
    if ("cause" in proof) {
      this.#refuse(authError(proof));
      return;
    }
    this.#proof = proof;
    this.#socket.on("data", this.#read);
  }

  readonly #read = (chunk: Buffer): void => {
    try {
      for (const frame of this.#reader.read(chunk)) this.#arrived(frame);
    } catch (error) {
      this.#refuse(
        error instanceof LeaseholdError
          ? error
          : new LeaseholdError("VERSION_MISMATCH", "these bytes do not come from a node of files"),
      );
    }
    if (this.#working >= workingMax) this.#socket.pause();
  };

  #arrived(frame: Frame): void {
    if (this.#node === undefined) {
      const { node, version } = admitted(this.#ports.self, this.#proof!, frame.head);
      this.#node = node;
      this.#timer.cancel();
      this.#ports.admitted();
      writeFrame(this.#socket, welcome(this.#ports.self, version), noBytes);
      return;
    }
    const { head } = frame;
    if (!isRecord(head)) throw new LeaseholdError("VERSION_MISMATCH", "a request is not an object");
    this.#working += 1;
    void this.#answer(this.#node, head, frame).finally(this.#answered);
  }

  readonly #answered = (): void => {
    this.#working -= 1;
    if (this.#working < workingMax) this.#socket.resume();
  };

  async #answer(
    node: string,
    head: Readonly<Record<string, unknown>>,
    { body, release }: Frame,
  ): Promise<void> {
    const { id } = head;
    const [kind, ask] = [head["kind"] as Kind, head["ask"] as Asks[Kind]];
    try {
      if (kind === "register") checkRegister(node, ask as Asks["register"]);
      const answered = await this.#ports.answerer.answer(kind, ask, body);
      // The block is on disk, and nothing refers to its bytes any more.
      if (kind === "piece") release();
      this.#write({ id, answer: answered.answer }, answered.body);
    } catch (error) {
      this.#write({ id, error: errorHead(error) }, noBytes);
    }
  }

  #write(head: object, body: Uint8Array): void {
    if (!this.#socket.destroyed) writeFrame(this.#socket, head, body);
  }

  /** Sends the reason and closes the connection. */
  #refuse(why: LeaseholdError): void {
    this.#ports.refused(why);
    this.#socket.off("data", this.#read);
    this.#socket.resume();
    this.#write(refusal(why), noBytes);
    this.#socket.end();
    this.#timer.cancel();
    this.#timer = this.#ports.timers.after(lingerMs, () => this.#socket.destroy());
  }
}

/** A new disk voids the votes of the previous one, so only the node itself may register it. */
function checkRegister(node: string, ask: Asks["register"]): void {
  if (ask.node !== node)
    throw new LeaseholdError("PERMISSION_DENIED", `node ${node} cannot register a disk of ${ask.node}`);
}

function errorHead(error: unknown): ErrorHead {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof LeaseholdError)) return { code: "DISK_FAILED", message };
  const { code } = error;
  return error instanceof FileUncertainError
    ? { code, message, isSettledByNext: error.isSettledByNext }
    : { code, message };
}
