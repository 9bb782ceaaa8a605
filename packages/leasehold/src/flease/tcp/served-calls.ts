import type { World } from "../../common/ports.js";
import { LeaseholdError } from "../../lease/errors.js";
import { AdminRpc } from "../admin/admin-rpc.js";
import { adminParamsOf } from "../admin/admin-answers.js";
import type { AdminHost } from "../admin/admin-rpc.js";
import type { EventLog } from "../../runtime/event-log.js";
import type { LogEvents } from "../../runtime/log-events.js";
import { identityOf } from "./transport/identity-of.js";
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

/** Calls that change who holds a resource: the event of each, and what it does. */
const audits = {
  break: ["lease-broken", "breaks the lease of"],
  favour: ["lease-handed-over", "hands over"],
  requestRelease: ["release-requested", "asks for"],
} as const;

type Audited = keyof typeof audits;

const isAudited = (method: string): method is Audited => Object.hasOwn(audits, method);

/** The participant, as seen by the calls that it answers. */
export interface ServedCallsHost extends Omit<AdminHost<Link>, "adminWork"> {
  readonly peer: FleasePeer;
  readonly membership: Membership;
  readonly views: NodeViews;
  readonly events: Pick<EventLog<LogEvents>, "log" | "limited">;
}

/** Answers peers' calls outside the protocol: each is passed to the part that it concerns. */
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
      const who = identityOf(link);
      const text = `${who.by} (${who.name}) is an observer and may not call ${JSON.stringify(method)}`;
      this.#node.events.limited("permission-denied", who.by, text, { call: method, ...who });
      throw new LeaseholdError("PERMISSION_DENIED", `an observer may not call ${JSON.stringify(method)}`);
    }
    const { membership, views } = this.#node;
    if (method === "rival") return membership.rivalReported(link, params);
    if (method === "connected") return membership.connectionsAnnounced(link, params);
    const ofViews = views.answer(link, method, params);
    if (ofViews !== undefined) return ofViews;
    const answer = this.#adminRpc.answer(link, method, params);
    return isAudited(method) ? this.#audited(answer, method, params, link) : answer;
  }

  /** Logs who made the change, once it is made. */
  async #audited(answer: Promise<unknown>, method: Audited, params: unknown, link: Link): Promise<unknown> {
    const done = await answer;
    if (done !== true) return done;
    const { resource, owner: holder, to, broken } = adminParamsOf(params);
    // The holder of a broken lease is also asked to release it.
    const [id, what] = audits[method];
    if (id === "release-requested" && broken) return done;
    const who = identityOf(link);
    const text = `${who.by} (${who.name}) ${what} ${JSON.stringify(resource)}`;
    const fields = { resource, ...who };
    if (id === "lease-handed-over") this.#node.events.log(id, `${text} to ${to}`, { ...fields, to });
    else this.#node.events.log(id, `${text}, held by ${holder}`, { ...fields, holder });
    return done;
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
