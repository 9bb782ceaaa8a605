import type { Message } from "../../protocol/message.js";
import { ByteWriter } from "../wire/bytes.js";
import { encodeMessage, messageBytesMax, openBatch, stampBatch } from "../wire/codec.js";
import { FrameKind } from "../wire/frame.js";
import type { ClockStamp, Echo } from "../wire/codec.js";

/** What one turn produces for one peer usually fits. */
const BUFFER_BYTES_MIN = 4 * 1024;

/**
 * A buffer that a burst has made larger than this is let go afterwards, so that memory follows the load down
 * again.
 */
const BUFFER_BYTES_KEPT = 256 * 1024;

/**
 * A batch that has grown to this is followed by another: the receiver can then work on the one while the next
 * arrives.
 */
const BATCH_BYTES_SPLIT = 128 * 1024;

/**
 * What waits for one peer: whole frames in one buffer, the last of which may be a batch that still grows. Two
 * buffers take turns, one being filled while the other is on its way.
 */
export class Outbox {
  #pending = new ByteWriter(BUFFER_BYTES_MIN);
  /** Renewals that must not wait behind anything else; undefined when there are none. */
  #urgent: Outbox | undefined;
  #spare: ByteWriter | undefined;
  /** Where the batch that still grows begins; -1 when there is none. */
  #batchStart = -1;
  #batchView = 0;

  get length(): number {
    return this.#pending.length + this.urgentLength;
  }

  get urgentLength(): number {
    return this.#urgent?.length ?? 0;
  }

  /** Appends a renewal: it leaves before all that waits. */
  addUrgent(message: Message): void {
    this.#urgent ??= new Outbox();
    this.#urgent.add(message);
  }

  add(message: Message): void {
    const writer = this.#pending;
    if (
      this.#batchStart === -1 ||
      this.#batchView !== message.view ||
      writer.length - this.#batchStart + messageBytesMax(message) > BATCH_BYTES_SPLIT
    ) {
      this.openBatch(message.view);
    }
    encodeMessage(writer, message);
  }

  /** Where a frame of another kind is to be written to. */
  get frames(): ByteWriter {
    this.#closeBatch();
    return this.#pending;
  }

  /**
   * Takes everything that waits, with these clocks in all its batches. The caller gives the buffer back when
   * the socket has done with it.
   */
  take(stamp: ClockStamp, echo: Echo): ByteWriter {
    this.#closeBatch();
    if (this.#urgent !== undefined) this.#putUrgentFirst(this.#urgent);
    const writer = this.#pending;
    const { view, bytes } = writer;
    for (let start = 0; start < writer.length; start += 4 + view.getUint32(start)) {
      if (bytes[start + 4] === FrameKind.batch) stampBatch(writer, start, stamp, echo);
    }
    this.#pending = this.#spare ?? new ByteWriter(BUFFER_BYTES_MIN);
    this.#spare = undefined;
    return writer;
  }

  giveBack(writer: ByteWriter): void {
    if (writer.bytes.length > BUFFER_BYTES_KEPT) return;
    writer.length = 0;
    this.#spare = writer;
  }

  #putUrgentFirst(urgent: Outbox): void {
    urgent.#closeBatch();
    const rest = this.#pending;
    this.#pending = urgent.#pending;
    this.#urgent = undefined;
    this.#pending.reserve(rest.length);
    this.#pending.raw(rest.bytes.subarray(0, rest.length));
  }

  /** Begins a batch. One that stays empty carries the clocks and shows that we are there. */
  openBatch(view: number): void {
    this.#closeBatch();
    this.#batchStart = openBatch(this.#pending, view);
    this.#batchView = view;
  }

  #closeBatch(): void {
    if (this.#batchStart === -1) return;
    this.#pending.endFrame(this.#batchStart);
    this.#batchStart = -1;
  }
}
