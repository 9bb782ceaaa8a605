import { EventLog, type EventCatalogue, type Logger } from "leasehold/runtime";

/** Every log event of a gateway. The library logs the events of its leases. */
export const logEvents = {
  "gateway-serving": { level: "info", fields: ["url"], help: "The gateway serves clients there." },
  "gateway-stopping": {
    level: "info",
    fields: ["sessions", "leases"],
    help: "The gateway stops, and leaves the leases of its sessions to expire.",
  },
  "request-failed": {
    level: "error",
    fields: ["method", "error"],
    help: "A fault of the gateway failed a request; its client got only the status.",
  },
  "credential-refused": {
    level: "warn",
    isAudit: true,
    fields: ["from"],
    help: "A request had no token or certificate of a user.",
  },
  "permission-denied": {
    level: "warn",
    isAudit: true,
    fields: ["user", "from", "action", "resource"],
    help: "A user has no right to what was asked for.",
  },
  "holder-action": {
    level: "info",
    isAudit: true,
    fields: ["user", "from", "action", "resource", "outcome"],
    help: "A client asked a holder to release or hand over, or broke a lease.",
  },
} as const satisfies EventCatalogue;

export type GatewayLog = EventLog<typeof logEvents>;

export const eventLog = (logger: Logger): GatewayLog =>
  new EventLog(logEvents, logger, () => performance.now());
