import { EventLog, type EventCatalogue, type Logger, silent } from "leasehold/runtime";

/** All log events of a file node, except those of the member that runs in it. */
export const logEvents = {
  "node-serving": {
    level: "info",
    fields: ["node", "url", "s3"],
    help: "The node serves clients there.",
  },
  "node-stopping": { level: "info", fields: ["node"], help: "The node stops." },
  "node-refused": {
    level: "warn",
    fields: ["peer", "code"],
    help: "A connection with another node was refused: another cluster, list of nodes or protocol.",
  },
  "disk-failed": {
    level: "error",
    fields: ["error"],
    help: "A disk operation has failed: check the disk, and restart the node.",
  },
  "server-fault": {
    level: "error",
    fields: ["error"],
    help: "A fault of this node failed a request; its client got only the status.",
  },

  "nodes-changed": {
    level: "info",
    isAudit: true,
    fields: ["change", "subject", "by", "address", "outcome"],
    help: "The list of nodes was changed, or (`unknown`) may have been. The subject is the node, or the number of copies.",
  },
  "users-changed": {
    level: "info",
    isAudit: true,
    fields: ["file", "subject"],
    help: "The file of users has changed. The subject names the users that came, went or differ.",
  },
  "permission-denied": {
    level: "warn",
    isAudit: true,
    fields: ["call", "path", "by", "address"],
    help: "A request that its user has no right to was refused.",
  },
  "credential-refused": {
    level: "warn",
    isAudit: true,
    fields: ["cause", "subject", "address"],
    help: "A wrong password or signature of a client, or another node's credentials. The subject is the claimed user.",
  },
} as const satisfies EventCatalogue;

export type LogEvents = typeof logEvents;

export function eventLog(logger: Logger = silent): EventLog<LogEvents> {
  return new EventLog(logEvents, logger, () => performance.now());
}
