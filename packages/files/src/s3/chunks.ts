import { createHash } from "node:crypto";
import { S3Error } from "./errors.js";
import { hmac, isSame, type Seed, sha256 } from "./signature.js";

/** The limits of a chunk's first line, and of all trailers together. */
const lineBytesMax = 256;
const trailerBytesMax = 4_096;

/** How the chunks of a body are encoded. */
export interface Chunked {
  /** Undefined: the chunks have no signatures, or signatures are not checked. */
  readonly seed: Seed | undefined;
  /** Whether the chunks must have signatures. */
  readonly isSigned: boolean;
  readonly hasTrailer: boolean;
}

/** The header values for which a body is `aws-chunked`. */
export function chunkedOf(contentSha256: string | undefined, seed: Seed | undefined): Chunked | undefined {
  switch (contentSha256) {
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
      return { seed, isSigned: true, hasTrailer: false };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
      return { seed, isSigned: true, hasTrailer: true };
    case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
      return { seed: undefined, isSigned: false, hasTrailer: true };
    default:
      if (contentSha256?.startsWith("STREAMING-") === true)
        throw new S3Error("NotImplemented", `${contentSha256} is not supported`);
      return undefined;
  }
}

/**
 * The bytes inside the chunks (`aws-chunked`). A wrong signature causes an error before the end of the bytes,
 * so that none of them are kept.
 * @param trailer is filled in
 * @throws S3Error `SignatureDoesNotMatch`, `IncompleteBody`, `InvalidRequest`
 */
export async function* unchunked(
  body: AsyncIterable<Uint8Array>,
  how: Chunked,
  trailer: Map<string, string>,
): AsyncGenerator<Uint8Array> {
  const input = new Input(body);
  const signatures = new Signatures(how.seed);
  for (;;) {
    const { size, signature } = firstLineOf(await input.line(lineBytesMax), how.isSigned);
    const hash = signatures.hash();
    for (let left = size; left > 0;) {
      const piece = await input.take(left);
      hash?.update(piece);
      left -= piece.length;
      yield piece;
    }
    signatures.check(signature, hash?.digest("hex"));
    if (size === 0) break;
    if ((await input.line(2)) !== "") throw malformed("a chunk does not end with its size");
  }
  if (how.hasTrailer) await readTrailer(input, trailer, how.isSigned ? signatures : undefined);
  else if ((await input.line(2)) !== "") throw malformed("something follows the last chunk");
  await input.mustEnd();
}

function firstLineOf(line: string, isSigned: boolean): { readonly size: number; readonly signature: string } {
  const match = /^([0-9a-fA-F]{1,11})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
  const [, size = "", signature = ""] = match ?? [];
  if (match === null || (signature !== "") !== isSigned) throw malformed("a chunk's first line is malformed");
  return { size: Number.parseInt(size, 16), signature };
}

async function readTrailer(
  input: Input,
  trailer: Map<string, string>,
  signatures: Signatures | undefined,
): Promise<void> {
  let text = "";
  let signature = "";
  for (let bytes = 0; ;) {
    const line = await input.line(trailerBytesMax - bytes);
    if (line === "") break;
    bytes += line.length + 2;
    const at = line.indexOf(":");
    const [name, value] = [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()];
    if (at < 1) throw malformed("a trailer is malformed");
    if (name === "x-amz-trailer-signature") signature = value;
    else {
      trailer.set(name, value);
      text += `${name}:${value}\n`;
    }
  }
  signatures?.checkTrailer(signature, text);
}

/** The chain of signatures in one body. */
class Signatures {
  readonly #seed: Seed | undefined;
  #last: string;

  constructor(seed: Seed | undefined) {
    this.#seed = seed;
    this.#last = seed?.signature ?? "";
  }

  hash() {
    return this.#seed === undefined ? undefined : createHash("sha256");
  }

  check(signature: string, hash: string | undefined): void {
    if (hash !== undefined) this.#check("AWS4-HMAC-SHA256-PAYLOAD", signature, sha256(""), hash);
  }

  checkTrailer(signature: string, text: string): void {
    this.#check("AWS4-HMAC-SHA256-TRAILER", signature, sha256(text));
  }

  #check(kind: string, signature: string, ...hashes: readonly string[]): void {
    if (this.#seed === undefined) return;
    const { key, date, scope } = this.#seed;
    const expected = hmac(key, [kind, date, scope, this.#last, ...hashes].join("\n")).toString("hex");
    if (!isSame(expected, signature))
      throw new S3Error("SignatureDoesNotMatch", "the signature of a chunk is wrong");
    this.#last = signature;
  }
}

/** Reads bytes as lines and pieces. */
class Input {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(body: AsyncIterable<Uint8Array>) {
    this.#source = body[Symbol.asyncIterator]();
  }

  /** Reads a line and returns it without its end. The limit of bytes includes the end. */
  async line(bytesMax: number): Promise<string> {
    for (;;) {
      const at = this.#rest.subarray(0, bytesMax).indexOf("\r\n");
      if (at >= 0) {
        const line = this.#rest.toString("latin1", 0, at);
        this.#rest = this.#rest.subarray(at + 2);
        return line;
      }
      if (this.#rest.length >= bytesMax) throw malformed("a line of a chunk is too long");
      await this.#more();
    }
  }

  /** Reads at least 1 byte and at most this many. */
  async take(bytesMax: number): Promise<Buffer> {
    while (this.#rest.length === 0) await this.#more();
    const piece = this.#rest.subarray(0, bytesMax);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  async mustEnd(): Promise<void> {
    for (let isDone: boolean | undefined = false; isDone !== true;) {
      if (this.#rest.length > 0) throw malformed("something follows the last chunk");
      const next = await this.#source.next();
      isDone = next.done;
      if (next.done !== true) this.#rest = Buffer.from(next.value);
    }
  }

  async #more(): Promise<void> {
    const next = await this.#source.next();
    if (next.done === true) throw new S3Error("IncompleteBody", "the body ends within a chunk");
    this.#rest = Buffer.concat([this.#rest, next.value]);
  }
}

const malformed = (why: string): S3Error => new S3Error("InvalidRequest", why);
