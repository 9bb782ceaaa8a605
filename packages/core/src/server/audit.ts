import type { MemberAddRequest, MemberRemoveRequest } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { TxnRequest } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { isRecord } from "leasehold/common";
import { hostOf } from "./accounts/address-of.js";
import type { Reports } from "./reports.js";
import type { UnaryCall } from "./wire/rpc/call.js";

/** The call, as the audit trail sees it. */
export type AuditedCall = Pick<UnaryCall, "code" | "metadata" | "peer" | "request">;

/** gRPC's codes of refusals. */
const [invalidArgument, permissionDenied, unauthenticated] = [3, 7, 16];
/**
 * Codes of calls whose client is gone, or was told that the outcome is unknown: the change may still happen.
 */
const uncertain: ReadonlySet<number> = new Set([1, 4, 14]);

const usersChanged = new Set([
  "AuthEnable",
  "AuthDisable",
  "UserAdd",
  "UserDelete",
  "UserChangePassword",
  "UserGrantRole",
  "UserRevokeRole",
  "RoleAdd",
  "RoleDelete",
  "RoleGrantPermission",
  "RoleRevokePermission",
]);
const membersChanged = new Set(["MemberAdd", "MemberRemove", "MemberUpdate", "MemberPromote"]);

/** The mark of a broken lease in its holder's record, as JSON. */
const brokenMark = '"broken":true';
/** Records are far shorter; larger values are not searched. */
const recordBytesMax = 8 * 1024;

/** Records who changed users, members or leaders, who broke leases, and who was refused. */
export class AuditTrail {
  readonly #reports: Pick<Reports, "limited" | "log" | "nameOf">;
  readonly #userOf: (call: AuditedCall) => string | Promise<string>;

  /** @param userOf returns the authenticated user of a call; empty: nobody */
  constructor(
    reports: Pick<Reports, "limited" | "log" | "nameOf">,
    userOf: (call: AuditedCall) => string | Promise<string>,
  ) {
    this.#reports = reports;
    this.#userOf = userOf;
  }

  /** A call of etcd's API has finished. */
  over(method: string, call: AuditedCall, response: unknown): void {
    if (call.code === 0) {
      if (isDone(method, call.request, response)) void this.#done(method, call, "done");
    } else if (uncertain.has(call.code)) {
      if (isDone(method, call.request, { succeeded: true })) void this.#done(method, call, "unknown");
    } else if (isRefusal(method, call.code)) void this.#refused(method, call);
  }

  async #done(method: string, call: AuditedCall, outcome: "done" | "unknown"): Promise<void> {
    const [by, address] = [await this.#who(call), call.peer.address];
    const subject = this.#subjectOf(method, call.request);
    const who = { by, address, outcome };
    const end = outcome === "done" ? "" : "; the call ended before its outcome was known";
    // Limited, as anybody can abort calls.
    const log: Pick<Reports, "log">["log"] = (id, text, fields) => {
      if (outcome === "done") this.#reports.log(id, text, fields);
      else this.#reports.limited(id, `${hostOf(address)} ${by} ${method}`, `${text}${end}`, fields);
    };
    const text = `${by} at ${address}: ${method} ${subject}`;
    if (usersChanged.has(method)) log("users-changed", text, { call: method, subject, ...who });
    else if (membersChanged.has(method)) log("members-changed", text, { call: method, subject, ...who });
    else if (method === "MoveLeader") log("leader-handed-over", text, { subject, ...who });
    else if (method === "Alarm") log("alarm-changed", text, { subject, ...who });
    else
      for (const { resource, holder, name } of brokenIn(call.request)) {
        const line = `${by} at ${address} (${name}) breaks the lease of ${resource}, held by ${holder}`;
        log("lease-broken", line, { resource, holder, name, ...who });
      }
  }

  async #refused(method: string, call: AuditedCall): Promise<void> {
    const { address } = call.peer;
    const host = hostOf(address);
    if (call.code === permissionDenied) {
      const by = await this.#who(call);
      const text = `${by} at ${address} has no right to ${method}`;
      this.#reports.limited("permission-denied", `${host} ${by}`, text, { call: method, by, address });
      return;
    }
    const subject = method === "Authenticate" ? this.#subjectOf(method, call.request) : "";
    const text =
      subject === ""
        ? `${method} from ${address} was refused: its token is not valid`
        : `${subject} at ${address} was refused: the name or the password is wrong`;
    this.#reports.limited("credential-refused", `${host} ${method}`, text, {
      call: method,
      subject,
      address,
    });
  }

  async #who(call: AuditedCall): Promise<string> {
    try {
      const user = await this.#userOf(call);
      return user === "" ? "anonymous" : user;
    } catch {
      return "anonymous";
    }
  }

  /** Returns the names in a request, and nothing else: it may have a password. */
  #subjectOf(method: string, request: unknown): string {
    if (!isRecord(request)) return "";
    if (method === "MemberAdd") return (request as unknown as MemberAddRequest).peerURLs.join(",");
    if (membersChanged.has(method))
      return this.#reports.nameOf((request as unknown as MemberRemoveRequest).ID);
    if (method === "MoveLeader") return this.#reports.nameOf(request["targetID"] as bigint);
    if (method === "Alarm")
      return `${alarmActions[Number(request["action"])]} ${alarmNames[Number(request["alarm"])]}`;
    const names = [request["user"] ?? request["name"], request["role"]];
    return names.filter((name) => typeof name === "string" && name !== "").join(" ");
  }
}

const alarmActions = ["get", "activate", "deactivate"];
const alarmNames = ["none", "nospace", "corrupt"];

function isDone(method: string, request: unknown, response: unknown): boolean {
  if (method === "Txn")
    return isRecord(response) && response["succeeded"] === true && brokenIn(request).length > 0;
  if (method === "Alarm") return isRecord(request) && request["action"] !== 0;
  return usersChanged.has(method) || membersChanged.has(method) || method === "MoveLeader";
}

function isRefusal(method: string, code: number): boolean {
  return (
    code === unauthenticated ||
    code === permissionDenied ||
    (method === "Authenticate" && code === invalidArgument)
  );
}

interface Broken {
  readonly resource: string;
  readonly holder: string;
  /** The participant's name, chosen by itself. */
  readonly name: string;
}

/**
 * Returns the leases that a transaction breaks: Leasehold's clients put the request into the holder's record.
 */
function brokenIn(request: unknown): Broken[] {
  if (!isRecord(request) || !Array.isArray(request["success"])) return [];
  return (request as unknown as TxnRequest).success.flatMap(({ request: { case: kind, value } }) => {
    if (kind !== "requestPut" || !value.ignoreLease || value.value.length > recordBytesMax) return [];
    const text = Buffer.from(value.value).toString("utf8");
    if (!text.includes(brokenMark)) return [];
    const record = parsed(text);
    const { asked, holder } = isRecord(record) ? record : {};
    if (!isRecord(asked) || asked["broken"] !== true || typeof holder !== "string") return [];
    const name = typeof asked["by"] === "string" ? asked["by"] : "";
    return [{ resource: Buffer.from(value.key).toString("utf8"), holder, name }];
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
