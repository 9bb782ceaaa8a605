import type { World } from "../../common/ports.js";
import { LeaseholdError } from "../../lease/errors.js";
import { AdminRpc } from "../admin/admin-rpc.js";
import type { AdminHost } from "../admin/admin-rpc.js";
import type { FleasePeer } from "../peer.js";
import type { Reading } from "../protocol/clock.js";
import { AdminTurns } from "./admin-turns.js";
import { labelKeepLeases, Labels } from "./labels.js";
import type { Membership } from "./membership.js";
import type { Link } from "./transport/link.js";
import type { CallHandler } from "./transport/transport-handler.js";
import type { NodeViews } from "./views/node-views.js";

/** Calls that an observer may make. New ones are not for observers until listed here. */
const observerCalls: ReadonlySet<string> = new Set([
  "status",
  "list",
  "explain",
  "watch",
  "unwatch",
  "label",
]);

/** The participant, as the calls that it answers use it. */
export interface ServedCallsHost extends Omit<AdminHost<Link>, "adminWork"> {
  readonly peer: FleasePeer;
  readonly membership: Membership;
  readonly views: NodeViews;
}

/** Answers peers' calls outside of the protocol: each is passed to the part that it is about. */
export class ServedCalls implements CallHandler {
  readonly #node: ServedCallsHost;
  readonly #adminRpc: AdminRpc<Link>;
  readonly #adminTurns: AdminTurns;
  #isClosed = false;

  constructor(node: ServedCallsHost, world: World) {
    this.#node = node;
    this.#adminTurns = new AdminTurns(world, (goOn) => this.#adminRpc.work(goOn));
    const host: AdminHost<Link> = {
      peer: node.peer,
      provider: node.provider,
      now: () => node.now(),
      status: () => node.status(),
      adminWork: () => {
        if (!this.#isClosed) this.#adminTurns.wanted();
      },
      get transport() {
        return node.transport;
      },
    };
    this.#adminRpc = new AdminRpc(host, new Labels(labelKeepLeases * node.peer.settings.ttlMaxMs));
  }

  answer(link: Link, method: string, params: unknown): unknown {
    if (link.role === "observer" && !observerCalls.has(method)) {
      throw new LeaseholdError("PERMISSION_DENIED", `an observer may not call ${JSON.stringify(method)}`);
    }
    const { membership, views } = this.#node;
    if (method === "rival") return membership.rivalReported(link, params);
    if (method === "connected") return membership.connectionsAnnounced(link, params);
    return views.answer(link, method, params) ?? this.#adminRpc.answer(link, method, params);
  }

  /** The label of the participant at the other end of a link. */
  setLabel(link: Link, label: string | undefined): void {
    this.#adminRpc.labels.set(link, label);
  }

  disconnected(link: Link): void {
    this.#adminRpc.disconnected(link);
  }

  /** Call several times a second. */
  maintain(now: Reading): void {
    this.#adminRpc.maintain(now);
  }

  /** Ends all calls: the peer begins as another incarnation. */
  restarted(): void {
    this.#adminRpc.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#adminRpc.close();
    this.#adminTurns.stop();
  }
}
