import type { ByteWriter } from "../wire/bytes.js";
import { FrameDecoder, FrameKind } from "../wire/frame.js";
import { callBytesMax, Link } from "./link.js";
import type { Carrier, LinkPorts } from "./link.js";
import type { Clock } from "../../../common/ports.js";
import type { Identity } from "../wire/identity.js";

/**
 * A member's loopback: writes are decoded and delivered before they return, by the same codec and in the
 * same order of calls as bytes from a socket, so that the protocol has no special case.
 */
class LoopbackCarrier implements Carrier {
  readonly ready = true;
  readonly #links: LinkPorts;
  readonly #clock: Clock;
  readonly #decoder: FrameDecoder;
  link: Link | undefined;

  constructor(links: LinkPorts, clock: Clock) {
    this.#links = links;
    this.#clock = clock;
    this.#decoder = new FrameDecoder((kind, bytes, start, end) => this.link!.frame(kind, bytes, start, end));
  }

  begin(link: Link): void {
    this.link = link;
    this.#decoder.allow(FrameKind.call, callBytesMax(link.role));
  }

  write(buffer: ByteWriter): boolean {
    const link = this.link!;
    link.heard(this.#clock.monotonicMs());
    this.#links.messages.chunk(link);
    this.#decoder.push(buffer.bytes, buffer.length);
    this.#links.messages.chunkEnd(link);
    return true;
  }

  close(): void {
    this.link!.closed();
  }
}

export function loopbackLink(links: LinkPorts, clock: Clock, self: Identity): Link {
  const carrier = new LoopbackCarrier(links, clock);
  carrier.begin(
    new Link(links, carrier, {
      peer: self,
      address: "loopback",
      clusterDocument: "",
      account: `member ${self.nodeId}`,
      mayBeMember: true,
    }),
  );
  return carrier.link!;
}
