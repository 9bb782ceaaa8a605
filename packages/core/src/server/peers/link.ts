import type { PeerWelcome } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import { isBulk, isProposal } from "../../replica/proposals/bulk.js";
import type { PeerMessage } from "../../replica/types.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { PeerCounts } from "../metrics/counters.js";
import type { KnownMember } from "../config/identity.js";
import { encodeMessage } from "./codec.js";
import { Connection } from "./connection.js";
import { bulkSince } from "./hello.js";

/** Bound of output queued for a slow peer: twice what the log has in flight to one. */
const waitingBytesMax = 32 * 1024 * 1024;

/** Bound of proposals queued here. Further ones wait at their sender until half of these have been sent. */
const proposalBytesMax = 1024 * 1024;

/** Number of unanswered heartbeats after which a peer counts as gone. */
const silentBeatsMax = 5;

/**
 * The same for the bulk connection: answers on a slow one queue behind everything in the kernel's buffers.
 */
const bulkSilentBeatsMax = 30;

/** Delay between dials, ms. A server that comes back is found faster than an election takes. */
const redialMs = 200;

export interface LinkOptions {
  readonly peer: KnownMember;
  /** @param isBulk whether it is for the second connection */
  readonly hello: (isBulk: boolean) => Uint8Array;
  readonly tls: TlsFiles | undefined;
  /**
   * A server that is silent for this long counts as gone, ms. A silently broken connection would otherwise
   * last for minutes.
   */
  readonly silenceMs: number;
  /** Messages in flight may be lost. */
  readonly unreachable: () => void;
  /** Reports to operators why there is no connection. */
  readonly trouble: (text: string) => void;
  /** @param takesRepeats the peer recognizes repeated proposals */
  readonly connected: (takesRepeats: boolean) => void;
  /** There is room for proposals again. */
  readonly drained: () => void;
  /** The peer reports that this server is a former member. */
  readonly removed: () => void;
  /** Returns why a server with this disk is refused; empty if it is not. */
  readonly judge: (disk: bigint) => Promise<string>;
  readonly counts?: PeerCounts;
}

/**
 * Carries all messages to one server, over two connections that we dial, and redial while the link is open.
 * One is for small and urgent messages, the other for messages that may be large
 * (`replica/proposals/bulk.ts`). With a server of an earlier version, one connection carries both.
 */
export class PeerLink {
  readonly #options: LinkOptions;
  readonly #beats: NodeJS.Timeout;
  readonly #counts: PeerCounts;
  #first: Connection | undefined;
  #second: Connection | undefined;
  #isClosed = false;
  #attempts = -1;
  #isFull = false;
  readonly #redials = new Set<NodeJS.Timeout>();
  #url = "";

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#counts = options.counts ?? new PeerCounts();
    this.#counts.queuedBytes = () => (this.#first?.waitingBytes ?? 0) + (this.#second?.waitingBytes ?? 0);
    this.#beats = setInterval(() => this.#beat(), options.silenceMs / silentBeatsMax);
    this.#connect();
  }

  /** The address dialed last. */
  get url(): string {
    return this.#url;
  }

  /** @returns whether the message was accepted */
  send(message: PeerMessage): boolean {
    const connection = isBulk(message) ? this.#bulk : this.#first;
    const isWelcome = connection?.isWelcome === true;
    if (isWelcome && isProposal(message.kind)) {
      this.#isFull ||= connection.waitingBytes >= proposalBytesMax;
      if (this.#isFull) return false;
    }
    if (!isWelcome || connection.waitingBytes > waitingBytesMax) {
      this.#counts.failures += 1;
      if (message.kind === "heartbeat") this.#counts.heartbeatFailures += 1;
      return false;
    }
    connection.write(encodeMessage(message, connection.version));
    return true;
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#beats);
    for (const redial of this.#redials) clearTimeout(redial);
    this.#first?.close();
    this.#second?.close();
  }

  get #isShared(): boolean {
    return this.#first !== undefined && this.#first.version < bulkSince;
  }

  get #bulk(): Connection | undefined {
    return this.#isShared ? this.#first : this.#second;
  }

  #beat(): void {
    this.#first?.beat();
    this.#second?.beat();
  }

  #connect(): void {
    const { hello, peer, tls } = this.#options;
    this.#attempts += 1;
    const url = peer.peerUrls[this.#attempts % peer.peerUrls.length]!;
    this.#url = url;
    this.#first = new Connection({
      url,
      hello: hello(false),
      tls,
      silentBeatsMax,
      traffic: this.#counts.traffic,
      pings: this.#counts,
      judge: (welcome) => this.#judge(welcome),
      welcome: () => {
        if (this.#isShared) this.#connected();
        else this.#connectBulk(url);
      },
      lost: (problem) => {
        this.#first = undefined;
        this.#second?.close();
        this.#second = undefined;
        this.#lost(url, problem, () => this.#connect());
      },
      written: this.#written,
    });
  }

  /** The second connection dials the address at which the first one reached the server. */
  #connectBulk(url: string): void {
    const { hello, tls } = this.#options;
    const first = this.#first;
    this.#second = new Connection({
      url,
      hello: hello(true),
      tls,
      silentBeatsMax: bulkSilentBeatsMax,
      traffic: this.#counts.traffic,
      judge: (welcome) => this.#judge(welcome),
      welcome: () => this.#connected(),
      lost: (problem) => {
        this.#second = undefined;
        this.#lost(url, problem, () => {
          if (this.#first === first) this.#connectBulk(url);
        });
      },
      written: this.#written,
    });
  }

  async #judge({ disk, removed }: PeerWelcome): Promise<string> {
    const own = await this.#options.judge(disk);
    // Counts only if the right server answered.
    if (own === "" && removed) this.#options.removed();
    return own;
  }

  #connected(): void {
    this.#isFull = false;
    this.#options.connected(!this.#isShared);
  }

  #lost(url: string, problem: string, again: () => void): void {
    if (this.#isClosed) return;
    this.#options.unreachable();
    this.#options.trouble(`${this.#options.peer.name} at ${url}: ${problem}`);
    const redial = setTimeout(() => {
      this.#redials.delete(redial);
      again();
    }, redialMs);
    this.#redials.add(redial);
  }

  readonly #written = (): void => {
    if (!this.#isFull || (this.#bulk?.waitingBytes ?? Infinity) > proposalBytesMax / 2) return;
    this.#isFull = false;
    this.#options.drained();
  };
}
