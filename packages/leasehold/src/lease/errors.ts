/** Every error of Leasehold. `docs/errors.md` has the same table, and a test compares the two. */
export const errorCodes = {
  LEASE_LOST: "The lease has expired or can no longer be trusted; stop using the resource.",
  LEASE_HELD: "Another participant holds the resource, and the call doesn't wait.",
  LEASE_BROKEN:
    "This participant's last lease on the resource was broken; it gets no other until the members have forgotten the break.",
  RELEASE_REQUESTED: "Another participant asks the holder to release the resource.",
  NO_QUORUM: "No majority of the members answered in time.",
  TIMEOUT: "The call timed out.",
  RESOURCES_FULL:
    "The members have reached their limit of resources, or this participant's share of it; the message names the participant with the most.",
  OVERLOADED: "This participant or its members are overloaded: renewals go first, and new work is refused.",
  CLOCK_SKEW: "The clocks of this machine and of its peers disagree by more than the cluster allows.",
  INVALID_NAME:
    "A resource's name must be 1 to 512 bytes of UTF-8 without control characters, and must not end like a slot's, with `/~` and a number. Only names that end with `/~rw` take a mode.",
  INVALID_HANDLE: "The text is not a handle that `detach` returned for a lease of this ground.",
  HANDLE_SPENT:
    "The handle's detached lease has expired, was attached before, was broken, or another participant has the resource.",
  INVALID_DURATION: 'A duration is a number of milliseconds or text such as "15s".',
  TTL_OUT_OF_RANGE: "The ttl is outside the provider's bounds; its guarantees give both.",
  INVALID_CONFIG:
    "The settings violate a rule of safety or progress, or name an unknown option; the message says which.",
  INVALID_URL: "Leasehold doesn't support this address.",
  TOO_MANY_WAITERS: "Too many callers of this process already wait for the resource, or in queues.",
  NOT_WAITING: "The participant that should get the lease isn't waiting for the resource.",
  WATCH_TOO_WIDE: "More resources match the prefix than one watch or list can report.",
  UNSUPPORTED: "Leases opened this way don't support the call.",
  CLUSTER_MISMATCH: "The peer belongs to another cluster.",
  CONFIG_MISMATCH: "A peer or another user of the stores has other settings; all must have the same.",
  VERSION_MISMATCH: "The peer speaks another version of the protocol.",
  UNAUTHENTICATED: "Authentication failed: a wrong or missing key or certificate; the message says which.",
  PERMISSION_DENIED: "The credentials, or the chosen role, do not allow this.",
  UNREACHABLE: "No member could be reached.",
  STORE_UNAVAILABLE: "The store doesn't answer, or reports that it is unavailable.",
  STORE_FULL: "The store has no space left for the write.",
  STORE_READ_ONLY: "The store is read-only.",
  STORE_PERMISSION: "The store rejects the credentials, or they lack a permission.",
  STORE_FOREIGN: "The store holds data that this version of Leasehold did not write; it is left untouched.",
  STORE_CORRUPT: "The store holds a damaged record; it is left untouched.",
  STORE_FORGOTTEN:
    "Too many stores have lost their content: register values and consensus decisions are unknown.",
  LOG_CORRUPT:
    "The core's replicated log contradicts itself, or a server's keys differ from the others': a disk has lost or changed data; the server stops.",
  STORE_UNFIT: "The store lacks a property that leases need; the message says what was tried and the result.",
  INVALID_PATH:
    "A file's path must be 1 to 480 bytes of UTF-8 without control characters, and no segment may be empty, `.` or `..`.",
  INVALID_RANGE: "An offset, a size or a length is out of the range of a file.",
  FILE_NOT_FOUND: "The file does not exist.",
  FILE_EXISTS: "The file exists, and the call creates files only.",
  FILE_CHANGED: "The file's version is not the one that the call expects.",
  QUOTA_EXCEEDED: "The change would bring more into a folder than its quota allows.",
  CURSOR_GONE: "The changes after the cursor are no longer kept, or it is another cluster's.",
  FILE_UNCERTAIN: "The write may or may not have taken effect: no majority confirmed it in time.",
  FILE_DAMAGED:
    "A block of the file cannot be read at any reachable node that should have it; the rest of the file isn't served either.",
  DISK_FAILED: "The disk failed a write or a flush; the server has stopped.",
  MEMBER_REMOVED:
    "This server was removed from its core and no longer takes part in it; the message names its data directory.",
  DATA_IN_USE: "Another process uses the data directory.",
  CLOSED: "This participant has been closed.",
  BAD_HISTORY:
    "A journal is truncated, out of order, from another run, or not a journal; the message names file and line.",
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

/** A setting, an option or a file that cannot be used. */
export function invalidConfig(why: string): LeaseholdError {
  return new LeaseholdError("INVALID_CONFIG", why);
}

/** The reasons for which a tenure ends without a release. */
export const lossReasons = {
  expired: "It expired: renewals failed, or the process was stopped or blocked for too long.",
  "clock-fault": "The two clocks of this machine disagree, or a majority contradicts them.",
  "max-hold": "The tenure has reached its `maxHold`.",
  broken: "Another participant broke the lease, so it could not be renewed.",
  closed: "Its `Leases` was closed.",
  released: "The program released it.",
  detached: "The program detached it, so that it expires by itself.",
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
 * The error of a loss that a check of the waist found. It has no stack trace: the stack would not contain any
 * call of the program, and capturing it takes longer than a renewal. When many leases are lost at once, that
 * time could make other leases expire.
 */
export function foundLost(resource: string, reason: LossReason): LeaseLostError {
  const { stackTraceLimit } = Error;
  // `Reflect.set` doesn't throw even if a program has frozen `Error`.
  Reflect.set(Error, "stackTraceLimit", 0);
  try {
    return new LeaseLostError(resource, reason);
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  }
}
