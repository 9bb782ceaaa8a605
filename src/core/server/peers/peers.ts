import type { Socket } from "node:net";
import type { PeerHello } from "../../gen/leasehold/peer_pb.js";
import type { Snapshots } from "../../journal/snapshots.js";
import type { InstallSnapshot, MemberId } from "../../raft/types.js";
import { Guests, type Roll } from "../../replica/roll.js";
import type { PeerMessage } from "../../replica/types.js";
import type { CoreMember } from "../../state/members.js";
import type { TlsFiles } from "../common/config.js";
import { idText } from "../common/identity.js";
import { type Comers, Listener } from "../common/listener.js";
import { type ListenUrl, parseUrl } from "../common/urls.js";
import { helloBytes, objectionTo, refusalOf, type Self, type Tokens } from "./hello.js";
import { Incoming, type Received } from "./incoming.js";
import { PeerLink } from "./link.js";
import { sendSnapshot } from "./snapshot-sender.js";

/**
 * Connections of which it is not known who is there. For one more the oldest of the host with most of them is
 * given up: nobody keeps others out by waiting, or by coming often.
 */
const strangersMax = 64;

/** A peer that has not proven its identity by then is disconnected, ms. */
const handshakeMs = 5_000;

/** How long a stranger may take to say who it is, ms: a few round trips. */
const helloMs = 2_000;

/** Of a connection that others have made; they say something far more often. */
const incomingSilenceFactor = 10;

/** How often it is looked whether guests are still there, ms. */
const guestLookMs = 1_000;

/** Addresses of one member that are looked at: as many as the log takes. */
const toldMax = 16;

/** What happens at the other servers. */
export interface PeersHandler extends Received {
  snapshotSent(member: MemberId, arrived: boolean): void;
  unreachable(member: MemberId): void;
  /** Whether a server has this disk, or came back with another; undefined as long as that is not known. */
  isKnownDisk(member: MemberId, disk: bigint): boolean | undefined;
  /** Remembers which disk a server has, unless it is known; false if it is another. */
  learnDisk(member: MemberId, disk: bigint): Promise<boolean>;
  /** Shown to a member that this server calls: what it once gave; empty if nothing. */
  tokenOf(member: MemberId): Uint8Array;
  /** Given to a member that this server calls. */
  tokenFor(member: MemberId): Uint8Array;
  isTokenOf(member: MemberId, shown: Uint8Array): boolean;
  /** A member that has called gives it. */
  keepToken(member: MemberId, token: Uint8Array): void;
  /** Another server says that this one is no member any more. */
  removed(): void;
  /** For people; the same is not said twice in a minute. */
  trouble(cause: string, text: string): void;
}

export interface PeersOptions {
  readonly self: Self;
  /** The servers of the core, until `update` tells of others. */
  readonly roll: Roll;
  readonly tls: TlsFiles | undefined;
  readonly silenceMs: number;
  readonly snapshots: Snapshots;
  readonly handler: PeersHandler;
}

/**
 * The other servers of the core. Messages to one go over a connection that we make, messages from it over one
 * that it makes.
 */
export class Peers {
  readonly #options: PeersOptions;
  readonly #links = new Map<MemberId, { readonly ways: string; readonly link: PeerLink }>();
  readonly #listeners: Listener[] = [];
  /** And from where they come. */
  readonly #strangers = new Map<Socket, string>();
  /** One of each server for messages, and one for a snapshot: a newer one takes the place of an older. */
  readonly #admitted = new Map<string, Socket>();
  readonly #closed = new AbortController();
  /** Already said to be out of reach; to say it once for each failure is enough. */
  readonly #unreachable = new Set<MemberId>();

  readonly #guests = new Guests();
  /** Of guests: nothing of them is written down, as anybody may come as one. */
  readonly #guestDisks = new Map<MemberId, bigint>();

  /** Where members are by their own words, beside what the log says: see `#hear`. */
  readonly #told = new Map<MemberId, readonly string[]>();

  #roll: Roll;
  #isOpen = false;
  #looking: NodeJS.Timeout | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#roll = options.roll;
  }

  get members(): readonly CoreMember[] {
    return this.#roll.members;
  }

  get #others(): readonly CoreMember[] {
    return [...this.#roll.members, ...this.#guests.all].filter(({ id }) => id !== this.#options.self.id);
  }

  /** Its addresses are those that the log has by now. */
  get #self(): Self {
    const { self } = this.#options;
    return { ...self, peerUrls: this.#roll.members.find(({ id }) => id === self.id)?.peerUrls ?? [] };
  }

  /** Who the servers are from now on: those who are gone are not heard any more, and get nothing. */
  update(roll: Roll): void {
    const before = new Set(this.#roll.members.map(({ id }) => id));
    // A guest is let in by what it says of itself: as a member it has to show that it is the one.
    for (const { id } of roll.members) if (!before.has(id)) this.#sendAway(id);
    this.#roll = roll;
    this.#guests.update(roll);
    this.#updateLinks();
  }

  #updateLinks(): void {
    if (!this.#isOpen || this.#closed.signal.aborted) return;
    for (const [id, { ways, link }] of this.#links) {
      const member = this.#others.find((other) => other.id === id);
      if (member !== undefined && this.#waysTo(member) === ways) continue;
      link.close();
      this.#links.delete(id);
      // Of one that is there now nothing was learnt at the other address.
      this.#guestDisks.delete(id);
      if (member !== undefined) continue;
      this.#told.delete(id);
      this.#sendAway(id);
      this.#unreachable.delete(id);
    }
    for (const peer of this.#others) if (!this.#links.has(peer.id)) this.#addLink(peer);
  }

  #sendAway(id: MemberId): void {
    for (const isSnapshot of [true, false]) this.#admitted.get(placeOf(id, isSnapshot))?.destroy();
  }

  #addLink(peer: CoreMember): void {
    const link = this.#linkTo(peer);
    this.#links.set(peer.id, { ways: this.#waysTo(peer), link });
    link.alsoAt((this.#told.get(peer.id) ?? []).filter((url) => !peer.peerUrls.includes(url)));
  }

  /**
   * A guest of which the log has told is called anew: only now it is remembered which disk it has. And so is
   * everybody when this server learns that it is elsewhere: hellos tell that, and are said once.
   */
  #waysTo({ id, peerUrls }: CoreMember): string {
    const words = [this.#guests.has(id) ? "guest" : "member", peerUrls.join(), this.#self.peerUrls!.join()];
    return words.join(" ");
  }

  /** @throws LeaseholdError `INVALID_CONFIG` if an address cannot be had */
  async open(urls: readonly ListenUrl[]): Promise<void> {
    for (const url of urls)
      this.#listeners.push(await Listener.open(url, this.#options.tls, { handshakeMs }, this.#comers));
    this.#isOpen = true;
    this.#looking = setInterval(() => this.#expireGuests(), guestLookMs);
    this.update(this.#roll);
  }

  send(message: PeerMessage): void {
    if (message.kind === "snapshot") void this.#sendSnapshot(message);
    else this.#links.get(message.to)?.link.send(message);
  }

  close(): void {
    this.#closed.abort();
    clearInterval(this.#looking);
    for (const { link } of this.#links.values()) link.close();
    for (const listener of this.#listeners) listener.close();
    for (const socket of [...this.#strangers.keys(), ...this.#admitted.values()]) socket.destroy();
  }

  #linkTo(peer: CoreMember): PeerLink {
    const { tls, silenceMs, handler } = this.#options;
    return new PeerLink({
      hello: (isTold) => helloBytes(this.#self, peer.id, false, isTold ? undefined : this.#tokens(peer.id)),
      peer: { ...peer, name: nameOf(peer) },
      tls,
      silenceMs,
      unreachable: () => {
        if (this.#unreachable.has(peer.id)) return;
        this.#unreachable.add(peer.id);
        handler.unreachable(peer.id);
      },
      // A guest may be anybody: this server would end by its word.
      removed: () => {
        if (!this.#guests.has(peer.id)) handler.removed();
      },
      trouble: (text) => handler.trouble(`link ${nameOf(peer)}`, `no connection to ${text}`),
      connected: () => this.#unreachable.delete(peer.id),
      judge: async (disk, isTold) => {
        // Nobody's disk is learnt where only the one that has called says that it is.
        if (isTold) return handler.isKnownDisk(peer.id, disk) === true ? "" : "somebody else is there";
        // Earlier versions do not say it.
        return disk === 0n || (await this.#learnDisk(peer.id, disk)) ? "" : lostDisk(nameOf(peer));
      },
    });
  }

  /** None for a guest: it is called where it has told, and not where the log says. */
  #tokens(to: MemberId): Tokens | undefined {
    const { handler } = this.#options;
    return this.#guests.has(to) ? undefined : { token: handler.tokenOf(to), given: handler.tokenFor(to) };
  }

  /**
   * A member that has been admitted says where it is. This server may not know it, if it was away when that was
   * agreed on, and then could not answer. Disks are no secrets, and anybody may claim to be a member: so it is
   * believed only if it shows what this server gave it when it called it, where the log says that it is. What
   * was believed, and what it has given, goes for nobody else either.
   */
  #hear({ from, given, name, peerUrls, token }: PeerHello): void {
    const { handler } = this.#options;
    const member = this.#roll.members.find(({ id }) => id === from);
    if (member === undefined) return;
    const isShown = handler.isTokenOf(from, token);
    // The first one counts, as at a beginning nobody has any to show.
    if (given.length > 0 && (isShown || handler.tokenOf(from).length === 0)) handler.keepToken(from, given);
    const news = peerUrls.slice(0, toldMax).filter((url) => !member.peerUrls.includes(url) && isUrl(url));
    if (!isShown) {
      const isKnown = news.every((url) => this.#told.get(from)?.includes(url));
      const text = `${name} says that it is at ${news.join()}, and does not show that it is who was at ${member.peerUrls.join()}`;
      if (!isKnown) handler.trouble(`moved ${from}`, text);
      return;
    }
    this.#told.set(from, news);
    this.#links.get(from)?.link.alsoAt(news);
  }

  async #learnDisk(member: MemberId, disk: bigint): Promise<boolean> {
    if (!this.#guests.has(member)) return this.#options.handler.learnDisk(member, disk);
    const known = this.#guestDisks.get(member) ?? disk;
    this.#guestDisks.set(member, known);
    this.#guests.reached(member);
    return known === disk;
  }

  #isGuestDisk(member: MemberId, disk: bigint): boolean | undefined {
    const known = this.#guestDisks.get(member);
    return known === undefined ? undefined : known === disk;
  }

  #expireGuests(): void {
    const isConnected = (id: MemberId) => this.#admitted.has(placeOf(id, false));
    if (this.#guests.expire(performance.now(), isConnected)) this.#updateLinks();
  }

  async #sendSnapshot(message: InstallSnapshot): Promise<void> {
    const { snapshots, tls, handler } = this.#options;
    const peer = this.#others.find(({ id }) => id === message.to);
    try {
      if (peer === undefined) throw new Error("it is no member");
      // At the address where it was reached: one of several may be out of date.
      const url = this.#links.get(peer.id)?.link.url ?? peer.peerUrls[0]!;
      await sendSnapshot(message, peer.id, url, snapshots, this.#self, tls, this.#closed.signal);
      handler.snapshotSent(message.to, true);
    } catch (error) {
      const name = peer === undefined ? "a server" : nameOf(peer);
      handler.trouble(`snapshot ${name}`, `a snapshot did not reach ${name}: ${(error as Error).message}`);
      handler.snapshotSent(message.to, false);
    }
  }

  readonly #comers: Comers = {
    admit: (socket) => {
      if (this.#closed.signal.aborted) return false;
      this.#addStranger(socket);
      // Below TLS nobody else hears it.
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
    failed: (error, socket) =>
      this.#options.handler.trouble("tls", `${socket.remoteAddress} was refused: ${error.message}`),
    unusable: (text) => this.#options.handler.trouble("files of TLS", text),
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
    const { handler, self, silenceMs } = this.#options;
    const incoming = {
      judge: (hello: PeerHello) => this.#judge(hello, socket.remoteAddress ?? ""),
      wasRemoved: ({ cluster, from }: PeerHello) => cluster === self.cluster && this.#roll.removed.has(from),
      members: () => this.#roll.members,
      admitted: (hello: PeerHello) => this.#admit(hello, socket),
      received: handler,
      // Usual when a core begins: it must not stand in the way of what is said of another refusal.
      trouble: (text: string) =>
        handler.trouble(text.endsWith(notReached) ? "not reached" : "incoming", text),
    };
    void new Incoming(self, socket, incoming, { helloMs, silenceMs: incomingSilenceFactor * silenceMs });
  }

  #admit(hello: PeerHello, socket: Socket): void {
    const { from, snapshot } = hello;
    this.#strangers.delete(socket);
    if (!snapshot) this.#hear(hello);
    const place = placeOf(from, snapshot);
    this.#admitted.get(place)?.destroy();
    this.#admitted.set(place, socket);
    socket.once("close", () => {
      if (this.#admitted.get(place) === socket) this.#admitted.delete(place);
    });
  }

  #judge(hello: PeerHello, host: string): string {
    const { self, handler } = this.#options;
    this.#meet(hello, host);
    const isMember = this.#others.some(({ id }) => id === hello.from);
    const refusal = refusalOf(hello, self, isMember);
    if (refusal !== "") return refusal;
    const isKnown = this.#guests.has(hello.from)
      ? this.#isGuestDisk(hello.from, hello.disk)
      : handler.isKnownDisk(hello.from, hello.disk);
    if (isKnown === undefined) return `${hello.name} ${notReached}`;
    return isKnown ? "" : lostDisk(hello.name);
  }

  /** Calls it back, if it may be a member of which this server has not heard. */
  #meet(hello: PeerHello, host: string): void {
    const { cluster, id } = this.#options.self;
    if (objectionTo(hello) !== "" || hello.cluster !== cluster || hello.to !== id) return;
    const peerUrls = hello.peerUrls.slice(0, toldMax).filter((url) => isForGuests(url, this.#options.tls));
    const call = { id: hello.from, peerUrls, host };
    if (this.#guests.meet(call, this.#roll, performance.now())) this.#updateLinks();
  }
}

/** The first one of those that the greatest number share. */
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

function placeOf(member: MemberId, isSnapshot: boolean): string {
  return `${member} ${isSnapshot}`;
}

function isUrl(text: string): boolean {
  try {
    parseUrl("a caller's address", text);
    return true;
  } catch {
    return false;
  }
}

/** A caller that may be anybody has nobody call a socket of this machine, or another without certificates. */
function isForGuests(text: string, tls: TlsFiles | undefined): boolean {
  if (!isUrl(text)) return false;
  const { isTls, path } = parseUrl("a caller's address", text);
  return path === undefined && (tls === undefined || isTls);
}

/** One that has not started has no name yet. */
function nameOf({ id, name }: CoreMember): string {
  return name === "" ? idText(id) : name;
}

const notReached = "has to be reached by us first, at its own address";

function lostDisk(name: string): string {
  return `${name} has come back without its data directory: what it promised before is lost with it`;
}
