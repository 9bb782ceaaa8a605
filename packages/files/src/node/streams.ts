import { Readable, Writable } from "node:stream";
import type { ReplicatedFile } from "../types.js";

/** The size of one read or write of a stream. */
const chunkBytes = 2 ** 20;

export interface ReadStreamOptions {
  /** The first byte. Default 0. */
  readonly start?: number | undefined;
  /** The end, exclusive. Default: the end of the file at the time when it is reached. */
  readonly end?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A readable stream of a file's content. The stream is not a snapshot: it reflects concurrent changes to the
 * part not read yet.
 */
export function readStream(file: ReplicatedFile, options: ReadStreamOptions = {}): Readable {
  return Readable.from(chunksOf(file, options), { objectMode: false, highWaterMark: chunkBytes });
}

async function* chunksOf(
  file: ReplicatedFile,
  { start = 0, end = Infinity, signal }: ReadStreamOptions,
): AsyncGenerator<Uint8Array> {
  for (let offset = start; offset < end;) {
    // Reads end at block boundaries, so that each block is read only once.
    const toBoundary = chunkBytes - (offset % chunkBytes);
    const bytes = await file.read(offset, Math.min(toBoundary, end - offset), { signal });
    if (bytes.length === 0) return;
    yield bytes;
    offset += bytes.length;
  }
}

export interface WriteStreamOptions {
  /** The offset of the first byte, default 0. The file is not truncated. */
  readonly start?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A writable stream to a file. When it finishes, all data is on disk at a majority. Data is buffered, so that
 * whole blocks are written.
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

/** Reports the outcome to a stream callback. */
function settle(work: Promise<void>, done: (error?: Error) => void): void {
  const tell = (error?: Error): void => done(error);
  void work.then(() => tell(), tell);
}
