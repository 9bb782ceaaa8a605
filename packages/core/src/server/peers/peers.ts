import type { Socket } from "node:net";
import type { PeerHello } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { InstallSnapshot, MemberId } from "../../raft/types.js";
import { ListedMembers, type Roll } from "../../replica/roll.js";
import type { PeerMessage } from "../../replica/types.js";
import type { CoreMember } from "../../state/members.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { Counters } from "../metrics/counters.js";
import { idText } from "../config/identity.js";
import { type ConnectionEvents, Listener } from "../wire/listen.js";
import type { ListenUrl } from "../wire/urls.js";
import { askMembers } from "./ask-members.js";
import { helloBytes, newestOf, type Purpose, purposeOf, refusalOf, type Self } from "./hello.js";
import { Incoming, type Received } from "./incoming.js";
import { PeerLink } from "./link.js";
import { sendSnapshot } from "./snapshot-sender.js";

/**
 * Bound of unidentified connections. A further one closes the oldest of the host with the most, so that no
 * host excludes others by silence or by many connections.
 */
const strangersMax = 64;

/** Time for a peer to prove its identity, ms. */
const handshakeMs = 5_000;

/** Timeout for a stranger's hello, ms: a few round trips. */
const helloMs = 2_000;

/** Factor of the silence allowed on connections that other servers dial, which send far more often. */
const incomingSilenceFactor = 10;

/** Delay between two rounds of asking members, ms. */
const askPauseMs = 2_000;

/**
 * A multiple of a link's silence. After this time, members are asked again whether they still list the
 * members that the log does not know.
 */
const relistFactor = 4;

/** Events of the other servers. */
export interface PeersHandler extends Received {
  snapshotSent(member: MemberId, arrived: boolean): void;
  unreachable(member: MemberId): void;
  /** @param takesRepeats the peer recognizes repeated proposals */
  connected(member: MemberId, takesRepeats: boolean): void;
  /** The connection to the member has room for proposals again. */
  drained(member: MemberId): void;
  /**
   * Whether this is the server's known disk, or it came back with another one; undefined if no disk is known.
   */
  isKnownDisk(member: MemberId, disk: bigint): boolean | undefined;
  /** Records a server's disk, if none is known. False: another one is known. */
  learnDisk(member: MemberId, disk: bigint): Promise<boolean>;
  /** The newest version that another server supports; 0: no longer known. */
  speaks(member: MemberId, version: number): void;
  /** Another server reports that this one is a former member. */
  removed(): void;
  /** Reports to operators. Reports with equal causes are logged once a minute. */
  trouble(cause: string, text: string): void;
  /** A connection's certificate was not accepted. */
  refused(address: string, text: string): void;
  /** A TLS file is unusable at present. */
  unusable(text: string): void;
}

export interface PeersOptions {
  readonly self: Omit<Self, "version">;
  /** The servers of the core, until `update`. */
  readonly roll: Roll;
  /** The other servers' addresses in this server's flags, which are also asked for the members. */
  readonly initialUrls: readonly string[];
  readonly tls: TlsFiles | undefined;
  readonly silenceMs: number;
  readonly snapshots: Snapshots;
  /** Bound of a received snapshot, larger than a state may be. */
  readonly snapshotBytesMax: number;
  readonly handler: PeersHandler;
  readonly counters?: Counters;
}

/**
 * The other servers of the core. We dial the connections for messages to a server, and the server dials those
 * for messages from it.
 */
export class Peers {
  readonly #options: PeersOptions;
  readonly #counters: Counters;
  readonly #links = new Map<MemberId, { readonly ways: string; readonly link: PeerLink }>();
  readonly #listeners: Listener[] = [];
  /** Unidentified connections, with their hosts. */
  readonly #strangers = new Map<Socket, string>();
  /** One connection per server and purpose: a newer one replaces an older one. */
  readonly #admitted = new Map<string, Socket>();
  readonly #closed = new AbortController();
  /** Servers already reported as unreachable, once per failure. */
  readonly #unreachable = new Set<MemberId>();

  readonly #listed = new ListedMembers();
  #roll: Roll;
  #isOpen = false;
  #isAsking = false;
  #askedMs = -Infinity;
  #relisting: NodeJS.Timeout | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#counters = options.counters ?? new Counters();
    this.#roll = options.roll;
  }

  /** Members of the log, and members that others list, with all their addresses. */
  get known(): readonly CoreMember[] {
    const members = [...this.#roll.members, ...this.#listed.unknownTo(this.#roll)];
    return members.map((member) => ({ ...member, peerUrls: this.#listed.addressesOf(member) }));
  }

  get #others(): readonly CoreMember[] {
    return this.known.filter(({ id }) => id !== this.#options.self.id);
  }

  get #self(): Self {
    return { ...this.#options.self, version: this.#roll.version };
  }

  /** Replaces the roll. Messages to and from removed servers are dropped. */
  update(roll: Roll): void {
    this.#roll = roll;
    this.#updateLinks();
  }

  #updateLinks(): void {
    if (!this.#isOpen || this.#closed.signal.aborted) return;
    const others = this.#others;
    this.#counters.keepPeers(new Set(others.map(({ id }) => id)));
    for (const [id, { ways, link }] of this.#links) {
      const member = others.find((other) => other.id === id);
      if (member?.peerUrls.join() === ways) continue;
      link.close();
      this.#links.delete(id);
      if (member !== undefined) continue;
      this.#sendAway(id);
      this.#unreachable.delete(id);
    }
    for (const peer of others)
      if (!this.#links.has(peer.id))
        this.#links.set(peer.id, { ways: peer.peerUrls.join(), link: this.#linkTo(peer) });
  }

  #sendAway(id: MemberId): void {
    for (const purpose of ["messages", "bulk", "snapshot"] as const)
      this.#admitted.get(placeOf(id, purpose))?.destroy();
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if an address is unavailable */
  async open(urls: readonly ListenUrl[]): Promise<void> {
    for (const url of urls)
      this.#listeners.push(
        await Listener.open(url, this.#options.tls, { handshakeMs }, this.#connectionEvents),
      );
    this.#isOpen = true;
    this.update(this.#roll);
  }

  /** @returns whether the message was accepted */
  send(message: PeerMessage): boolean {
    if (message.kind !== "snapshot") return this.#links.get(message.to)?.link.send(message) ?? false;
    void this.#sendSnapshot(message);
    return true;
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#relisting);
    for (const { link } of this.#links.values()) link.close();
    for (const listener of this.#listeners) listener.close();
    for (const socket of [...this.#strangers.keys(), ...this.#admitted.values()]) socket.destroy();
  }

  #linkTo(peer: CoreMember): PeerLink {
    const { handler, silenceMs, tls } = this.#options;
    return new PeerLink({
      hello: (isBulk) => helloBytes(this.#self, peer.id, isBulk ? "bulk" : "messages"),
      peer: { ...peer, name: nameOf(peer) },
      tls,
      silenceMs,
      counts: this.#counters.peer(peer.id),
      unreachable: () => {
        // The server may have moved.
        this.#askMembers();
        if (this.#unreachable.has(peer.id)) return;
        this.#unreachable.add(peer.id);
        handler.unreachable(peer.id);
      },
      // Counts only if it comes from a member of this server's own log.
      removed: () => {
        if (this.#roll.members.some(({ id }) => id === peer.id)) handler.removed();
      },
      trouble: (text) => handler.trouble(`link ${nameOf(peer)}`, `no connection to ${text}`),
      connected: (takesRepeats) => {
        this.#unreachable.delete(peer.id);
        handler.connected(peer.id, takesRepeats);
      },
      drained: () => handler.drained(peer.id),
      // Earlier versions do not send a disk id.
      judge: async (disk) =>
        disk === 0n || (await handler.learnDisk(peer.id, disk)) ? "" : lostDisk(nameOf(peer)),
    });
  }

  async #sendSnapshot(message: InstallSnapshot): Promise<void> {
    const { snapshots, tls, handler } = this.#options;
    const peer = this.#others.find(({ id }) => id === message.to);
    try {
      if (peer === undefined) throw new Error("it is no member");
      // The address at which the peer was reached, as one of several may be out of date.
      const url = this.#links.get(peer.id)?.link.url ?? peer.peerUrls[0]!;
      await sendSnapshot(message, peer.id, url, snapshots, this.#self, tls, this.#closed.signal);
      handler.snapshotSent(message.to, true);
    } catch (error) {
      const name = peer === undefined ? "a server" : nameOf(peer);
      handler.trouble(`snapshot ${name}`, `a snapshot did not reach ${name}: ${(error as Error).message}`);
      handler.snapshotSent(message.to, false);
    }
  }

  readonly #connectionEvents: ConnectionEvents = {
    admit: (socket) => {
      if (this.#closed.signal.aborted) return false;
      this.#addStranger(socket);
      // The socket below TLS has no other listener.
      socket.on("error", () => undefined);
      return true;
    },
    accepted: (socket, admitted) => {
      if (socket !== admitted) {
        this.#strangers.delete(admitted);
        this.#addStranger(socket);
      }
      this.#accepted(socket);
    },
    failed: (error, socket) => this.#options.handler.refused(socket.remoteAddress ?? "", error.message),
    unusable: (text) => this.#options.handler.unusable(text),
  };

  #addStranger(socket: Socket): void {
    this.#strangers.set(socket, socket.remoteAddress ?? "");
    if (this.#strangers.size > strangersMax) {
      const oldest = oldestOfMost(this.#strangers);
      this.#strangers.delete(oldest);
      oldest.destroy();
    }
    socket.once("close", () => this.#strangers.delete(socket));
  }

  #accepted(socket: Socket): void {
    const { handler, self, silenceMs, snapshotBytesMax } = this.#options;
    const incoming = {
      judge: (hello: PeerHello) => this.#judge(hello),
      wasRemoved: ({ cluster, from }: PeerHello) => cluster === self.cluster && this.#roll.removed.has(from),
      members: () => this.#roll.members,
      admitted: (hello: PeerHello) => this.#admit(hello, socket),
      received: handler,
      // Normal when a core begins, so it must not suppress the report of another refusal.
      trouble: (text: string) =>
        handler.trouble(text.endsWith(notReached) ? "not reached" : "incoming", text),
    };
    void new Incoming(this.#self, socket, incoming, {
      helloMs,
      silenceMs: incomingSilenceFactor * silenceMs,
      snapshotBytesMax,
    });
  }

  #admit(hello: PeerHello, socket: Socket): void {
    const { from } = hello;
    const purpose = purposeOf(hello);
    if (purpose === "messages") this.#options.handler.speaks(from, newestOf(hello));
    this.#strangers.delete(socket);
    const place = placeOf(from, purpose);
    this.#admitted.get(place)?.destroy();
    this.#admitted.set(place, socket);
    this.#counters.peer(from).traffic.follow(socket);
    socket.once("close", () => {
      if (this.#admitted.get(place) !== socket) return;
      this.#admitted.delete(place);
      // The server may come back with an earlier version.
      if (purpose === "messages") this.#options.handler.speaks(from, 0);
    });
  }

  #judge(hello: PeerHello): string {
    const { handler } = this.#options;
    const isMember = this.#others.some(({ id }) => id === hello.from);
    if (!isMember) this.#askMembers();
    const refusal = refusalOf(hello, this.#self, isMember);
    if (refusal !== "") return refusal;
    const isKnown = handler.isKnownDisk(hello.from, hello.disk);
    if (isKnown === undefined) return `${hello.name} ${notReached}`;
    return isKnown ? "" : lostDisk(hello.name);
  }

  /**
   * Asks for the members at the addresses in the log and in this server's flags, because a caller is unknown
   * or a member unreachable. Claims of callers are not used.
   */
  #askMembers(): void {
    const { initialUrls, self, tls } = this.#options;
    if (this.#closed.signal.aborted || this.#isAsking || performance.now() - this.#askedMs < askPauseMs)
      return;
    this.#isAsking = true;
    const others = this.#roll.members.filter(({ id }) => id !== self.id);
    const urls = new Set(others.flatMap(({ peerUrls }) => peerUrls).concat(initialUrls));
    const asked = [...urls].map((url) =>
      askMembers(url, self.name, tls).then(
        ({ cluster, members }) => (cluster === self.cluster ? [members] : []),
        () => [],
      ),
    );
    void Promise.all(asked).then((lists) => {
      this.#isAsking = false;
      this.#askedMs = performance.now();
      this.#listed.take(lists.flat());
      this.#updateLinks();
      this.#relist();
    });
  }

  /** A member that only others list may not be one: the entry that added it may never have been committed. */
  #relist(): void {
    clearTimeout(this.#relisting);
    if (this.#closed.signal.aborted || this.#listed.unknownTo(this.#roll).length === 0) return;
    this.#relisting = setTimeout(() => this.#askMembers(), relistFactor * this.#options.silenceMs);
  }
}

/** Returns the oldest connection of the host with the most. */
function oldestOfMost(strangers: ReadonlyMap<Socket, string>): Socket {
  const byHost = new Map<string, Socket[]>();
  for (const [socket, host] of strangers) {
    const others = byHost.get(host);
    if (others === undefined) byHost.set(host, [socket]);
    else others.push(socket);
  }
  const [first] = [...byHost.values()].reduce((one, other) => (other.length > one.length ? other : one));
  return first!;
}

function placeOf(member: MemberId, purpose: Purpose): string {
  return `${member} ${purpose}`;
}

/** A member that has not started has no name yet. */
function nameOf({ id, name }: CoreMember): string {
  return name === "" ? idText(id) : name;
}

const notReached = "has to be reached by us first, at its own address";

/**
 * Whether a problem is normal while servers start one after the other: a server is missing, or does not know
 * the caller yet.
 */
export function isUsualAtStart(text: string): boolean {
  return text.endsWith(notReached) || /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN)\b/.test(text);
}

function lostDisk(name: string): string {
  return `${name} has come back without its data directory: what it promised before is lost with it`;
}
