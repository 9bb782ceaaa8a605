import type { FileCallOptions, FileStat, ReplicatedFile } from "../types.js";
import { LeaseholdError } from "leasehold/common";
import { checkRange } from "./failures.js";
import { noBytes, type Operation, type OperationResult } from "./messages.js";
import type { Outcome } from "./serving.js";
import type { Router } from "./router.js";

/** The methods of an open file. Each is one operation. */
export abstract class FileMethods implements ReplicatedFile {
  readonly path: string;
  readonly blockSize: number;
  #isClosed = false;

  constructor(path: string, blockSize: number) {
    this.path = path;
    this.blockSize = blockSize;
  }

  protected abstract operate(
    operation: Operation,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<Outcome<OperationResult>>;

  async stat(options?: FileCallOptions): Promise<FileStat> {
    return (await this.#operate({ kind: "stat" }, noBytes, options)).result.stat;
  }

  async read(offset: number, length: number, options?: FileCallOptions): Promise<Uint8Array> {
    checkRange(offset, length);
    return (await this.#operate({ kind: "read", offset, length }, noBytes, options)).bytes;
  }

  async write(offset: number, bytes: Uint8Array, options?: FileCallOptions): Promise<void> {
    checkRange(offset, bytes.length);
    await this.#operate({ kind: "write", offset }, bytes, options);
  }

  async append(bytes: Uint8Array, options?: FileCallOptions): Promise<number> {
    checkRange(0, bytes.length);
    return (await this.#operate({ kind: "append" }, bytes, options)).result.offset ?? 0;
  }

  async truncate(size: number, options?: FileCallOptions): Promise<void> {
    checkRange(size, 0);
    await this.#operate({ kind: "truncate", size }, noBytes, options);
  }

  async sync(options?: FileCallOptions): Promise<number> {
    return (await this.#operate({ kind: "sync" }, noBytes, options)).result.nodes ?? 0;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #operate(
    operation: Operation,
    bytes: Uint8Array,
    { signal }: FileCallOptions = {},
  ): Promise<Outcome<OperationResult>> {
    if (this.#isClosed) throw new LeaseholdError("CLOSED", `${this.path} was closed`);
    return this.operate(operation, bytes, signal);
  }
}

/** An open file of the protocol, without names: its path is its key. */
export class OpenFile extends FileMethods {
  readonly #router: Router;

  constructor(router: Router, path: string, blockSize: number) {
    super(path, blockSize);
    this.#router = router;
  }

  protected operate(
    operation: Operation,
    bytes: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<Outcome<OperationResult>> {
    return this.#router.operate(this.path, operation, bytes, signal);
  }
}
