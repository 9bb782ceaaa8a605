/**
 * Every error of Leasehold, in one table. `docs/errors.md` shows the same table; a test holds the two
 * together.
 */
export const errorCodes = {
  LEASE_LOST: "The lease has run out or can no longer be trusted; stop using the resource.",
  LEASE_HELD: "Another holds the resource, and the call was told not to wait.",
  LEASE_BROKEN:
    "This participant's last lease on the resource was broken; it gets no other until the members have forgotten that.",
  RELEASE_REQUESTED: "Somebody asks the holder to give the resource back.",
  NO_QUORUM: "No majority of the members answered in time.",
  TIMEOUT: "What was waited for did not come within the time that the call was willing to wait.",
  RESOURCES_FULL:
    "The members keep as many resources as they may, or as this participant may have; the message says for whom the most.",
  OVERLOADED:
    "This participant, or its members, cannot do all work in time, and renew what is held before they begin anything new.",
  CLOCK_SKEW: "The clocks of this machine and of its peers disagree by more than the cluster allows.",
  INVALID_NAME:
    "A resource's name must be 1 to 512 bytes of UTF-8 without control characters, and not end as a slot's does, with `/~` and a number. Readers have names that end with `/~rw`, and no other name takes a mode.",
  INVALID_HANDLE: "The text is no handle that `detach` has given out for leases of this ground.",
  HANDLE_SPENT:
    "The detached lease of the handle has run out, was attached before, was broken, or another has the resource.",
  INVALID_DURATION: 'A duration is a number of milliseconds or text such as "15s".',
  TTL_OUT_OF_RANGE: "The ttl is outside what the provider allows; its guarantees name both bounds.",
  INVALID_CONFIG:
    "The settings break a rule that safety or progress needs, or name an option that does not exist; the message says which.",
  INVALID_URL: "The address is not one that Leasehold understands.",
  TOO_MANY_WAITERS: "Too many callers of this process already wait for the resource, or in lines.",
  NOT_WAITING: "The one that the lease is to be handed over to does not wait for the resource.",
  WATCH_TOO_WIDE: "More resources lie below the prefix than one watch or list can tell of.",
  UNSUPPORTED: "Leases that were opened like this cannot do that.",
  CLUSTER_MISMATCH: "The peer belongs to another cluster.",
  CONFIG_MISMATCH: "A peer or another user of the stores runs with other settings; all must have the same.",
  VERSION_MISMATCH: "The peer speaks another version of the protocol.",
  UNAUTHENTICATED:
    "One side does not believe who the other is: a wrong or missing key or certificate; the message says which.",
  PERMISSION_DENIED: "The credentials, or the role that was chosen, do not allow this.",
  UNREACHABLE: "No member could be reached.",
  STORE_UNAVAILABLE: "The store does not answer, or says that it cannot at the moment.",
  STORE_FULL: "The store has no room for what should be written.",
  STORE_READ_ONLY: "The store can only be read.",
  STORE_PERMISSION: "The store refuses the credentials, or what they may do is not enough.",
  STORE_FOREIGN:
    "The store holds something that this version of Leasehold did not write; it is left as it is.",
  STORE_CORRUPT: "The store holds a damaged record; it is left as it is.",
  STORE_FORGOTTEN:
    "So many stores have lost their content that the values of registers and the decisions of consensus cannot be known.",
  LOG_CORRUPT:
    "The core's replicated log contradicts itself, or a server has other keys than the others: a disk has lost or changed what was on it; the server stops.",
  STORE_UNFIT:
    "The store does not do what leases need of it; the message says what was tried and what came of it.",
  INVALID_PATH:
    "A file's path must be 1 to 480 bytes of UTF-8 without control characters, in segments of which none is empty, `.` or `..`.",
  INVALID_RANGE: "An offset, a size or a length lies outside what a file can have.",
  FILE_NOT_FOUND: "There is no such file.",
  FILE_EXISTS: "There is such a file already, and the call was told to create it.",
  FILE_CHANGED: "The file has another version than the call was told to expect.",
  FILE_UNCERTAIN: "The change of the file may or may not have been done: no majority said so in time.",
  FILE_DAMAGED:
    "A block of the file cannot be read at any node that can be reached and should have it; nothing else of the file is served.",
  DISK_FAILED: "The disk has refused a write, or to make it durable; the server has stopped.",
  MEMBER_REMOVED:
    "This server was removed from its core, and takes no more part in it; the message names its data directory.",
  DATA_IN_USE: "Another process works in the data directory.",
  CLOSED: "This participant has been closed.",
  BAD_HISTORY:
    "A journal is cut off, out of order, of another run or not a journal at all; the message names file and line.",
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** The base of every error that Leasehold throws. Programs test `code`; people read `message`. */
export class LeaseholdError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string = errorCodes[code], options?: ErrorOptions) {
    super(message, options);
    this.name = "LeaseholdError";
    this.code = code;
  }
}

/** Why a tenure ended without a release. */
export const lossReasons = {
  expired: "It ran out: renewals failed, or the process was stopped or blocked for too long.",
  "clock-fault": "The two clocks of this machine disagree, or a majority contradicts them.",
  "max-hold": "The tenure has reached its `maxHold`.",
  broken: "Somebody has broken the lease, so it could not be renewed.",
  closed: "Its `Leases` was closed.",
  released: "This program has released it.",
  detached: "This program has detached it, to let it run out.",
} as const;

export type LossReason = keyof typeof lossReasons;

/**
 * The lease can no longer be trusted. Thrown by `assertHeld` and `renew`, and the reason of `lease.signal`.
 */
export class LeaseLostError extends LeaseholdError {
  readonly resource: string;
  readonly reason: LossReason;

  constructor(resource: string, reason: LossReason, detail?: string) {
    super(
      "LEASE_LOST",
      `lease on ${JSON.stringify(resource)} is gone (${reason})${detail ? `: ${detail}` : ""}`,
    );
    this.name = "LeaseLostError";
    this.resource = resource;
    this.reason = reason;
  }
}

/**
 * The error of a loss that was found by a look of our own, without a stack: it would lead to no call of the
 * program, and takes longer than a renewal. When many are lost, others would be for that.
 */
export function foundLost(resource: string, reason: LossReason): LeaseLostError {
  const { stackTraceLimit } = Error;
  // Refused where a program has frozen what the language brings.
  Reflect.set(Error, "stackTraceLimit", 0);
  try {
    return new LeaseLostError(resource, reason);
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  }
}
