import { EventLog, type EventCatalogue } from "./event-log.js";
import type { Logger } from "./logger.js";

/** Every log event of leases, members and clients. The core and files have their own catalogues. */
export const logEvents = {
  "lease-acquired": {
    level: "info",
    fields: ["resource", "holder", "token"],
    help: "A lease was acquired.",
  },
  "lease-released": {
    level: "info",
    fields: ["resource", "holder", "token", "heldMs"],
    help: "The program ended a lease.",
  },
  "lease-late": {
    level: "warn",
    fields: ["resource", "holder", "token", "remainingMs", "error"],
    help: "A renewal is late and is retried. The lease is still held.",
  },
  "lease-lost": {
    level: "error",
    fields: ["resource", "holder", "token", "reason"],
    help: "A lease was lost.",
  },
  "lease-refused": {
    level: "warn",
    fields: ["resource", "outcome", "waitedMs"],
    help: "An acquisition has failed; the outcome is the error's code.",
  },

  "member-listening": {
    level: "info",
    fields: ["member", "address"],
    help: "The member listens there.",
  },
  "member-ready": { level: "info", fields: ["member"], help: "The member's vote counts." },
  "member-stopping": { level: "info", fields: ["member"], help: "The member stops." },
  "metrics-listening": { level: "info", fields: ["address"], help: "Metrics and health are served there." },
  "member-connected": {
    level: "info",
    fields: ["member", "address"],
    help: "Connected with that member.",
  },
  "member-lost": {
    level: "warn",
    fields: ["member", "address", "reason"],
    help: "The connection with that member has ended. It is dialled again.",
  },
  "connection-refused": {
    level: "error",
    fields: ["address", "code"],
    help: "A member refuses this process, or the reverse.",
  },
  "connection-repelled": {
    level: "warn",
    fields: ["address", "cause"],
    help: "An incoming connection was refused: another protocol, configuration or role.",
  },
  "member-duplicate": {
    level: "error",
    fields: ["member"],
    help: "Two processes are the same member. Stop one of them.",
  },
  "view-entered": {
    level: "info",
    fields: ["view", "members", "joint"],
    help: "The members are these; while joint, also those before.",
  },
  "views-missing": {
    level: "warn",
    fields: ["file"],
    help: "The views file is missing: no vote before the member is removed and added again.",
  },
  "views-unwritable": {
    level: "warn",
    fields: ["error"],
    help: "The views file cannot be written: the member has no vote, and takes part in no change.",
  },
  "views-full": {
    level: "warn",
    fields: [],
    help: "This process has met too many ids of members: restart it.",
  },
  "clock-fault": {
    level: "error",
    fields: ["reason"],
    help: "This machine's clock jumped, or contradicts the members'. Every lease of the process is lost.",
  },
  "listen-failed": {
    level: "error",
    fields: ["address", "error"],
    help: "The member cannot listen after a clock fault, and tries again.",
  },
  "settings-advice": {
    level: "warn",
    fields: [],
    help: "A setting is allowed, but probably a mistake.",
  },
  "settings-reloaded": {
    level: "info",
    fields: ["setting", "value"],
    help: "SIGHUP: the server has taken the new value of `setting`.",
  },
  "settings-need-restart": {
    level: "warn",
    fields: ["setting", "value"],
    help: "SIGHUP: `setting` has changed; only a restart applies it.",
  },
  "settings-refused": {
    level: "warn",
    fields: ["error"],
    help: "SIGHUP: the settings have a fault, so nothing changes.",
  },
  "files-reread": {
    level: "info",
    fields: ["paths"],
    help: "Certificates, keys or users were read again.",
  },
  "files-unusable": {
    level: "warn",
    fields: ["paths"],
    help: "Such files have changed and cannot be used. Their former content stays in use.",
  },
  "worker-ended": {
    level: "error",
    fields: ["error"],
    help: "The thread that renews leases has ended: none is renewed or acquired.",
  },

  "lease-broken": {
    level: "info",
    isAudit: true,
    fields: ["resource", "holder", "by", "name", "address"],
    help: "The member bars the holder's renewals, so that the lease runs out.",
  },
  "lease-handed-over": {
    level: "info",
    isAudit: true,
    fields: ["resource", "to", "by", "name", "address"],
    help: "That waiter is notified first when the holder releases.",
  },
  "release-requested": {
    level: "info",
    isAudit: true,
    fields: ["resource", "holder", "by", "name", "address"],
    help: "The holder was asked to release the resource.",
  },
  "members-changed": {
    level: "info",
    isAudit: true,
    fields: ["view", "added", "removed", "by", "name", "address"],
    help: "A change of the members has begun.",
  },
  "permission-denied": {
    level: "warn",
    isAudit: true,
    fields: ["call", "by", "name", "address"],
    help: "A call that this participant's credentials do not allow was refused.",
  },
  "credential-refused": {
    level: "warn",
    isAudit: true,
    fields: ["address", "cause"],
    help: "A connection with no, wrong, expired or revoked credentials was refused.",
  },
} as const satisfies EventCatalogue;

export type LogEvents = typeof logEvents;

/** @param nowMs the steady clock, or any function if no event is limited */
export function eventLog(logger: Logger, nowMs: () => number = () => performance.now()): EventLog<LogEvents> {
  return new EventLog(logEvents, logger, nowMs);
}
