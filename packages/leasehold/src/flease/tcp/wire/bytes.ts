import { isUtf8 } from "node:buffer";
import { few } from "../../../common/lists.js";
import { FRAME_HEADER_BYTES } from "./frame.js";
import type { FrameKind } from "./frame.js";
import { FrameError } from "./frame-error.js";

/** A JavaScript loop encodes text up to this length faster than a call into the runtime. */
const SHORT_TEXT_LENGTH = 48;

/** Reused lists of character codes, one for each length of short text. */
const codesOf = Array.from({ length: SHORT_TEXT_LENGTH + 1 }, (_, length) =>
  Array.from("0".repeat(length), Number),
);

/** Largest whole number that a double holds exactly; ballot numbers stay below it until 2089. */
const NUMBER_MAX = Number.MAX_SAFE_INTEGER;

/** Lower bound of bytes in unrestricted text. */
const ANY = 0;
const PRINTABLE = 0x20;

/** A buffer that grows as it is written. All numbers are big-endian. */
export class ByteWriter {
  bytes: Buffer;
  view: DataView;
  length = 0;

  constructor(sizeBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(sizeBytes);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Makes room; every write below requires it. */
  reserve(moreBytes: number): void {
    const neededBytes = this.length + moreBytes;
    if (neededBytes <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * this.bytes.length));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }

  u8(value: number): void {
    this.bytes[this.length++] = value;
  }

  u16(value: number): void {
    this.view.setUint16(this.length, value);
    this.length += 2;
  }

  u32(value: number): void {
    this.view.setUint32(this.length, value);
    this.length += 4;
  }

  f64(value: number): void {
    this.view.setFloat64(this.length, value);
    this.length += 8;
  }

  /** Begins a frame of this kind and returns its start. `endFrame` fills in the length. */
  beginFrame(kind: FrameKind, bodyBytesMax: number): number {
    const start = this.length;
    this.reserve(FRAME_HEADER_BYTES + bodyBytesMax);
    this.u32(0);
    this.u8(kind);
    return start;
  }

  /** Ends the frame that began at `start`. The length counts what follows the length itself. */
  endFrame(start: number): void {
    this.view.setUint32(start, this.length - start - 4);
  }

  raw(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** UTF-8 without a length. Returns the number of bytes; three bytes per UTF-16 unit must be reserved. */
  utf8(text: string): number {
    const start = this.length;
    const { bytes } = this;
    if (text.length <= SHORT_TEXT_LENGTH) {
      let index = 0;
      while (index < text.length) {
        const code = text.charCodeAt(index);
        if (code >= 0x80) break;
        bytes[start + index] = code;
        index += 1;
      }
      if (index === text.length) {
        this.length = start + index;
        return index;
      }
    }
    const written = bytes.write(text, start, "utf8");
    this.length = start + written;
    return written;
  }

  /** One byte of length, then the text. */
  text8(text: string): void {
    const at = this.length++;
    this.bytes[at] = this.utf8(text);
  }

  /** Two bytes of length, then the text. */
  text16(text: string): void {
    const at = this.length;
    this.length += 2;
    this.view.setUint16(at, this.utf8(text));
  }

  /** Four bytes of length, then the text. */
  text32(text: string): void {
    const at = this.length;
    this.length += 4;
    this.view.setUint32(at, this.utf8(text));
  }
}

/** A cursor over received bytes. Malformed input throws a {@link FrameError}; only text is copied. */
export class ByteReader {
  #bytes: Buffer = Buffer.alloc(0);
  #view = new DataView(this.#bytes.buffer, 0, 0);
  #offset = 0;
  #end = 0;

  /** Starts at the given range of a buffer. Further ranges of the same buffer are free. */
  reset(bytes: Buffer, start: number, end: number): void {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.#offset = start;
    this.#end = end;
  }

  get remaining(): number {
    return this.#end - this.#offset;
  }

  #take(size: number): number {
    const at = this.#offset;
    if (at + size > this.#end) {
      throw new FrameError("truncated", `a field of ${size} bytes where ${this.remaining} are left`);
    }
    this.#offset = at + size;
    return at;
  }

  u8(): number {
    return this.#bytes[this.#take(1)]!;
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** A time or a duration: finite, from 0 to 2^53. */
  time(): number {
    const value = this.#view.getFloat64(this.#take(8));
    // Written so that NaN is refused too. Adding 0 turns a negative zero into a positive one.
    if (!(value >= 0 && value <= NUMBER_MAX)) throw new FrameError("number", `${value} is not a time`);
    return value + 0;
  }

  /** A ballot number: whole, from 0 to 2^53 - 1. */
  whole(): number {
    const value = this.#view.getFloat64(this.#take(8));
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new FrameError("number", `${value} is not a ballot number`);
    }
    return value + 0;
  }

  /** A copy. */
  raw(size: number): Buffer {
    const at = this.#take(size);
    return Buffer.from(this.#bytes.subarray(at, at + size));
  }

  hex(size: number): string {
    const at = this.#take(size);
    return this.#bytes.toString("hex", at, at + size);
  }

  text8(lengthMin: number, lengthMax: number): string {
    return this.#text(this.u8(), lengthMin, lengthMax, ANY);
  }

  text16(lengthMin: number, lengthMax: number): string {
    return this.#text(this.u16(), lengthMin, lengthMax, ANY);
  }

  text32(lengthMin: number, lengthMax: number): string {
    return this.#text(this.u32(), lengthMin, lengthMax, ANY);
  }

  /** Text without control characters: it is shown to others, and JSON would escape each with six bytes. */
  name8(lengthMin: number, lengthMax: number): string {
    return this.#text(this.u8(), lengthMin, lengthMax, PRINTABLE);
  }

  name16(lengthMin: number, lengthMax: number): string {
    return this.#text(this.u16(), lengthMin, lengthMax, PRINTABLE);
  }

  #text(length: number, lengthMin: number, lengthMax: number, byteMin: number): string {
    if (length < lengthMin || length > lengthMax) {
      throw new FrameError("text", `${length} bytes of text where ${lengthMin} to ${lengthMax} are allowed`);
    }
    const bytes = this.#bytes;
    const start = this.#take(length);
    const end = start + length;
    const codes = codesOf[length];
    for (let at = start; at < end; at += 1) {
      const byte = bytes[at]!;
      if (codes !== undefined) codes[at - start] = byte;
      if (byte < byteMin || byte >= 0x7f) {
        if (!isUtf8(bytes.subarray(start, end))) throw new FrameError("utf8", "text that is not UTF-8");
        const text = bytes.toString("utf8", start, end);
        if (byteMin === PRINTABLE && /\p{Cc}/u.test(text))
          throw new FrameError("text", "a name with a control character");
        return text;
      }
    }
    return codes === undefined ? bytes.toString("latin1", start, end) : String.fromCharCode(...few(codes));
  }

  /** Throws unless everything has been read. */
  finish(): void {
    if (this.remaining > 0) throw new FrameError("trailing", `${this.remaining} bytes after the last field`);
  }
}
