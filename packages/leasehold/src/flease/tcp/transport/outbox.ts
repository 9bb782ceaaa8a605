import type { Message } from "../../protocol/message.js";
import { ByteWriter } from "../wire/bytes.js";
import { encodeMessage, messageBytesMax, openBatch, stampBatch } from "../wire/codec.js";
import { FrameKind } from "../wire/frame.js";
import type { ClockStamp, Echo } from "../wire/codec.js";

/** Initial size: usually holds one turn's output for one peer. */
const BUFFER_BYTES_MIN = 4 * 1024;

/** Buffers that a burst enlarged beyond this are released afterwards. */
const BUFFER_BYTES_KEPT = 256 * 1024;

/** A batch of this size is split: the receiver can work on one part while the next arrives. */
const BATCH_BYTES_SPLIT = 128 * 1024;

/**
 * The queue for one peer: whole frames in one buffer, the last of which may be a batch that is still open. Of
 * two buffers, one fills while the other is in flight.
 */
export class Outbox {
  #pending = new ByteWriter(BUFFER_BYTES_MIN);
  /** Renewals, which must not queue behind other messages; undefined when there are none. */
  #urgent: Outbox | undefined;
  #spare: ByteWriter | undefined;
  /** Start of the open batch; -1 when there is none. */
  #batchStart = -1;
  #batchView = 0;

  get length(): number {
    return this.#pending.length + this.urgentLength;
  }

  get urgentLength(): number {
    return this.#urgent?.length ?? 0;
  }

  /** Appends a renewal, which leaves before all other messages. */
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

  /** The buffer for frames of other kinds. */
  get frames(): ByteWriter {
    this.#closeBatch();
    return this.#pending;
  }

  /**
   * Takes everything queued, with these clocks in all its batches. The caller returns the buffer when the
   * socket has finished with it.
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

  /** Begins a batch. An empty one carries the clocks and serves as a heartbeat. */
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
