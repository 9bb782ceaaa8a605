import { EventLog, type EventCatalogue, type Logger } from "leasehold/runtime";

/** Every log event of a core's server. */
export const logEvents = {
  "core-serving": {
    level: "info",
    fields: ["server", "id", "urls"],
    help: "The server serves clients there.",
  },
  "core-stopping": { level: "info", fields: ["server"], help: "The server stops." },
  "leader-changed": {
    level: "info",
    fields: ["leader", "term", "leads"],
    help: "The server follows that leader, or leads itself.",
  },
  "leader-lost": { level: "info", fields: ["leader", "term"], help: "The server knows no leader." },
  "journal-torn": {
    level: "warn",
    fields: ["bytes"],
    help: "A crash had cut off a write, which was removed from the journal.",
  },
  "cluster-forced": {
    level: "warn",
    fields: [],
    help: "Started with --force-new-cluster: what only the other servers had is lost.",
  },
  "tls-unverified": { level: "warn", fields: [], help: "--peer-auto-tls verifies nobody." },
  "tls-same-authority": {
    level: "warn",
    fields: [],
    help: "Clients and servers have the same authority: a client can speak as a server.",
  },
  "tls-crl-outdated": {
    level: "warn",
    fields: ["file"],
    help: "A list of revoked certificates is out of date, and stays in use.",
  },
  "tls-file-unusable": {
    level: "warn",
    fields: ["error"],
    help: "A TLS file cannot be read. Its former content stays in use.",
  },
  "setting-ignored": { level: "warn", fields: [], help: "A setting of etcd has no effect here." },
  "version-raised": {
    level: "info",
    fields: ["version"],
    help: "The servers speak that version from now on: older ones cannot come back.",
  },
  "initial-check": { level: "info", fields: [], help: "The result of the check of keys at the start." },
  "copies-differ": {
    level: "warn",
    fields: ["error"],
    help: "Servers have different keys, or cannot be compared.",
  },
  "connection-limit": {
    level: "warn",
    fields: ["port", "error"],
    help: "A connection was refused: too many are open.",
  },
  "peer-trouble": {
    level: "warn",
    fields: ["cause", "error"],
    help: "A connection with another server has failed, or what came over it was refused.",
  },
  "server-trouble": {
    level: "warn",
    fields: ["error"],
    help: "A message or a client's request was refused inside the server, or a snapshot has failed.",
  },

  "users-changed": {
    level: "info",
    isAudit: true,
    fields: ["call", "subject", "by", "address", "outcome"],
    help: "Authentication, a user, a role or a right was changed. The subject is the user or role.",
  },
  "members-changed": {
    level: "info",
    isAudit: true,
    fields: ["call", "subject", "by", "address", "outcome"],
    help: "A server was added, removed, promoted or got other addresses.",
  },
  "leader-handed-over": {
    level: "info",
    isAudit: true,
    fields: ["subject", "by", "address", "outcome"],
    help: "The leadership was moved to that server.",
  },
  "alarm-changed": {
    level: "info",
    isAudit: true,
    fields: ["subject", "by", "address", "outcome"],
    help: "A client has raised an alarm or disarmed one.",
  },
  "lease-broken": {
    level: "info",
    isAudit: true,
    fields: ["resource", "holder", "by", "name", "address", "outcome"],
    help: "A client has barred the holder's renewals, so that the lease runs out.",
  },
  "permission-denied": {
    level: "warn",
    isAudit: true,
    fields: ["call", "by", "address"],
    help: "A call that its user has no right to was refused.",
  },
  "credential-refused": {
    level: "warn",
    isAudit: true,
    fields: ["call", "subject", "address"],
    help: "A wrong password, an invalid token, or a server with the wrong certificate. The subject is the claimed user.",
  },
} as const satisfies EventCatalogue;

export type LogEvents = typeof logEvents;

export function eventLog(logger: Logger): EventLog<LogEvents> {
  return new EventLog(logEvents, logger, () => performance.now());
}
