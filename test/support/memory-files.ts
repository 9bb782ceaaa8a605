import type {
  FileStat,
  FilesStatus,
  Files,
  ListFilesOptions,
  OpenFileOptions,
  ReplicatedFile,
} from "../../packages/files/src/types.js";
import { LeaseholdError } from "../../packages/leasehold/src/lease/errors.js";

interface Content {
  bytes: Buffer;
  version: number;
}

function failure(code: string): LeaseholdError {
  return new LeaseholdError(code as "CLOSED", code);
}

/** Replicated files without replicas: what stands before them sees no difference while all nodes are well. */
export class MemoryFiles implements Files {
  readonly contents = new Map<string, Content>();
  /** Called before each write; what it throws the write rejects with. */
  onWrite: (path: string, offset: number) => void = () => undefined;
  #version = 0;

  async open(path: string, { create = "never" }: OpenFileOptions = {}): Promise<ReplicatedFile> {
    const found = this.contents.get(path);
    if (found === undefined && create === "never") throw failure("FILE_NOT_FOUND");
    if (found !== undefined && create === "always") throw failure("FILE_EXISTS");
    if (found === undefined || create === "replace") this.#set(path, Buffer.alloc(0));
    return this.#fileAt(path);
  }

  stat = async (path: string): Promise<FileStat> => {
    const { bytes, version } = this.#at(path);
    return { path, size: bytes.length, version: `v${version}`, modifiedMs: 1_700_000_000_000 };
  };

  async list(prefix: string, { after = "", limit = 3 }: ListFilesOptions = {}) {
    const paths = [...this.contents.keys()].filter((path) => path.startsWith(prefix) && path > after).sort();
    const files = await Promise.all(paths.slice(0, limit).map(this.stat));
    return paths.length > limit ? { files, next: files.at(-1)!.path } : { files };
  }

  async remove(path: string): Promise<void> {
    this.#at(path);
    this.contents.delete(path);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.copy(from, to);
    await this.remove(from);
  }

  async copy(from: string, to: string): Promise<void> {
    this.#set(to, this.#at(from).bytes);
  }

  status(): FilesStatus {
    return {
      node: "a",
      state: "serving",
      peers: [{ node: "b", address: "127.0.0.1:1", reachable: true, behind: 0 }],
      primaries: [],
      counters: { reads: 0, writes: 0, forwarded: 0, resets: 0, scrubbed: 0, damaged: 0, repaired: 0 },
    };
  }

  async close(): Promise<void> {}
  async [Symbol.asyncDispose](): Promise<void> {}

  #fileAt(path: string): ReplicatedFile {
    return {
      path,
      blockSize: 65_536,
      stat: () => this.stat(path),
      read: async (offset, length) => this.#at(path).bytes.subarray(offset, offset + length),
      write: async (offset, bytes) => {
        this.onWrite(path, offset);
        const before = this.#at(path).bytes;
        const next = Buffer.alloc(Math.max(before.length, offset + bytes.length));
        next.set(before);
        next.set(bytes, offset);
        this.#set(path, next);
      },
      append: async () => 0,
      truncate: async (size) => this.#set(path, Buffer.from(this.#at(path).bytes.subarray(0, size))),
      sync: async () => 1,
      close: async () => undefined,
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  #at(path: string): Content {
    const found = this.contents.get(path);
    if (found === undefined) throw failure("FILE_NOT_FOUND");
    return found;
  }

  #set(path: string, bytes: Buffer): void {
    this.contents.set(path, { bytes, version: (this.#version += 1) });
  }
}
