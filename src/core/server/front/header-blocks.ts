import { repairAuthority } from "./authority.js";
import { blockPart, flag, type Frame, frameAt, frameType, headBytes, payloadBytesMax } from "./frames.js";

/** A header block, in one frame or several, is held until it is whole: longer ones the server behind refuses. */
const heldBytesMax = 128 * 1024;

/** Repairs what a client sends, piece by piece: the same bytes come out, but for the slashes. */
export class HeaderBlocks {
  /** The beginning of a frame, or of a header block of several. */
  #held: Buffer = Buffer.alloc(0);
  /** Of a frame that is no header block: so many bytes of it are still to come. */
  #passing = 0;
  /** What comes is no HTTP/2 that anybody takes: it goes on as it is. */
  #isOpaque = false;

  /** What can go on now. */
  take(piece: Buffer): Buffer[] {
    if (this.#isOpaque) return [piece];
    const passed = piece.subarray(0, this.#passing);
    this.#passing -= passed.length;
    const rest = piece.subarray(passed.length);
    const out = passed.length === 0 ? [] : [passed];
    if (rest.length === 0) return out;
    const bytes = this.#held.length === 0 ? rest : Buffer.concat([this.#held, rest]);
    const until = this.#go(bytes);
    this.#held = bytes.subarray(until);
    if (this.#isOpaque || this.#held.length > heldBytesMax) {
      this.#isOpaque = true;
      this.#held = Buffer.alloc(0);
      return [...out, bytes];
    }
    if (until > 0) out.push(bytes.subarray(0, until));
    return out;
  }

  /** Repairs the blocks in it. @returns up to where it is done with */
  #go(bytes: Buffer): number {
    for (let at = 0; ;) {
      const frame = frameAt(bytes, at);
      if (frame === undefined) return at;
      if (frame.end - frame.start - headBytes > payloadBytesMax) {
        this.#isOpaque = true;
        return bytes.length;
      }
      if (frame.type !== frameType.headers) {
        this.#passing = Math.max(0, frame.end - bytes.length);
        if (this.#passing > 0) return bytes.length;
        at = frame.end;
        continue;
      }
      const block = framesOfBlock(bytes, frame);
      if (block === undefined) return at;
      repairBlock(bytes, block);
      at = block.at(-1)!.end;
    }
  }
}

/** The frames that a header block stands in; nothing if they are not all there. */
export function framesOfBlock(bytes: Uint8Array, first: Frame): Frame[] | undefined {
  const frames: Frame[] = [];
  for (let frame: Frame | undefined = first; frame !== undefined; frame = frameAt(bytes, frame.end)) {
    if (frame.end > bytes.length) return undefined;
    frames.push(frame);
    // Another kind of frame in between ends the connection: the server behind sees it.
    if ((frame.flags & flag.endHeaders) !== 0 || isStray(frame, frames.length)) return frames;
  }
  return undefined;
}

function isStray({ type }: Frame, place: number): boolean {
  return place > 1 && type !== frameType.continuation;
}

/** @returns whether there was something to repair */
export function repairBlock(bytes: Uint8Array, frames: readonly Frame[]): boolean {
  const parts = frames.map((frame) => blockPart(bytes, frame)).filter((part) => part !== undefined);
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return repairAuthority(only);
  const block = Buffer.concat(parts);
  if (!repairAuthority(block)) return false;
  let at = 0;
  for (const part of parts) {
    part.set(block.subarray(at, at + part.length));
    at += part.length;
  }
  return true;
}
