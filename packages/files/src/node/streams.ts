import { Readable, Writable } from "node:stream";
import type { ReplicatedFile } from "../types.js";

/** What one chunk of a stream asks for or writes at once. */
const chunkBytes = 2 ** 20;

export interface ReadStreamOptions {
  /** The first byte, default 0. */
  readonly start?: number | undefined;
  /** The first byte that is not read any more. Default: the end of the file when it is reached. */
  readonly end?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The content of a file as a stream of Node. Not of one moment: a change meanwhile is seen from where it was
 * made on.
 */
export function readStream(file: ReplicatedFile, options: ReadStreamOptions = {}): Readable {
  return Readable.from(chunksOf(file, options), { objectMode: false, highWaterMark: chunkBytes });
}

async function* chunksOf(
  file: ReplicatedFile,
  { start = 0, end = Infinity, signal }: ReadStreamOptions,
): AsyncGenerator<Uint8Array> {
  for (let offset = start; offset < end;) {
    // Up to the end of a block, so that each is read once.
    const toBoundary = chunkBytes - (offset % chunkBytes);
    const bytes = await file.read(offset, Math.min(toBoundary, end - offset), { signal });
    if (bytes.length === 0) return;
    yield bytes;
    offset += bytes.length;
  }
}

export interface WriteStreamOptions {
  /** Where the first byte goes, default 0. The file is not cut. */
  readonly start?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A stream of Node that writes to a file. When it has finished, all of it is on disk at a majority. What
 * arrives is gathered, so that blocks are written whole.
 */
export function writeStream(file: ReplicatedFile, { start = 0, signal }: WriteStreamOptions = {}): Writable {
  let offset = start;
  let gathered: Buffer[] = [];
  let bytes = 0;
  const flush = async (atLeast: number): Promise<void> => {
    while (bytes >= atLeast) {
      const joined = Buffer.concat(gathered);
      const part = joined.subarray(0, chunkBytes - (offset % chunkBytes));
      await file.write(offset, part, { signal });
      offset += part.length;
      gathered = [joined.subarray(part.length)];
      bytes -= part.length;
    }
  };
  return new Writable({
    highWaterMark: chunkBytes,
    write(chunk: Buffer, _encoding, done) {
      gathered.push(chunk);
      bytes += chunk.length;
      settle(flush(chunkBytes), done);
    },
    final(done) {
      settle(flush(1), done);
    },
  });
}

/** Tells a stream what came of it. */
function settle(work: Promise<void>, done: (error?: Error) => void): void {
  const tell = (error?: Error): void => done(error);
  void work.then(() => tell(), tell);
}
