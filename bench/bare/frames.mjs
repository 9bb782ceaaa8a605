// The frames of the bare exchange. A frame is a u32 with the length of the rest, then padding as long as the
// header of Leasehold's batch, then messages of the same size as Leasehold's:
//   acquire: u8, u32 which, u16 length of the name, the name, f64 number, u32, u8, f64 until, f64 duration
//   release: u8, u32 which, u16 length of the name, the name, f64 number, u32; it is not answered
//   answer:  u8, u32 which, f64 number, u32

/** Length and kind of a frame, then the header of a batch: a view, three clocks, three echoed clocks. */
export const headerBytes = 5 + 4 + 6 * 8;

export const kinds = { acquire: 3, release: 4 };
/** The sizes of a request up to its name, and of the parts that follow the name. */
export const beforeName = 7;
export const afterName = { [kinds.acquire]: 8 + 4 + 1 + 8 + 8, [kinds.release]: 8 + 4 };
export const answerBytes = 5 + 8 + 4;

/**
 * Calls `frame(bytes, start, end)` for the messages of each complete frame. The bytes are valid only during
 * the call.
 */
export function readFrames(socket, frame) {
  let rest;
  socket.on("data", (chunk) => {
    const bytes = rest === undefined ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 4) {
      const end = at + 4 + bytes.readUInt32BE(at);
      if (end > bytes.length) break;
      frame(bytes, at + headerBytes, end);
      at = end;
    }
    rest = at === bytes.length ? undefined : bytes.subarray(at);
  });
}

/** One frame that grows until it is written. */
export class Frame {
  #bytes = Buffer.allocUnsafe(64 * 1024);
  #length = headerBytes;

  get isEmpty() {
    return this.#length === headerBytes;
  }

  /** Reserves the next `size` bytes: `at` in `bytes`. */
  add(size) {
    const at = this.#length;
    this.#length += size;
    if (this.#length > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], 2 * this.#length);
    return at;
  }

  get bytes() {
    return this.#bytes;
  }

  writeTo(sockets) {
    this.#bytes.writeUInt32BE(this.#length - 4, 0);
    const bytes = this.#bytes.subarray(0, this.#length);
    this.#length = headerBytes;
    for (const socket of sockets) socket.write(bytes);
    // Until the kernel has taken all bytes, the sockets still use this buffer.
    if (sockets.some((socket) => socket.writableLength > 0)) {
      this.#bytes = Buffer.allocUnsafe(this.#bytes.length);
    }
  }
}
