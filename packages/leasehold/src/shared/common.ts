/**
 * Code that Leasehold's packages share and any part of them may use: errors, durations, clocks, small pure
 * helpers. Internal to those packages: it may change in any release.
 */
export { unlessAborted, unwatchAbort, watchAbort } from "../common/abort-watch.js";
export { backOffMs } from "../common/back-off.js";
export { type BothClocks, elapsedMs, readBothClocks } from "../common/both-clocks.js";
export { clockRateErrorDefault, relied, whyNoClockRateError } from "../common/clock-rates.js";
export { type DeadlineItem, Deadlines } from "../common/deadlines.js";
export { Charge, Room } from "../common/room.js";
export { isCount, isRecord, recordOrEmpty, textOrEmpty } from "../common/json.js";
export { append, few, greatest, least } from "../common/lists.js";
export { majorityOf } from "../common/majority.js";
export { getOrInsert } from "../common/maps.js";
export { NumberMap } from "../common/number-map.js";
export { Pauses } from "../common/pauses.js";
export type { Clock, Random, Timer, Timers, World } from "../common/ports.js";
export { Sessions } from "../common/sessions.js";
export { timeLeft } from "../common/time-left.js";
export { Xorshift } from "../common/xorshift.js";
export { parseDuration } from "../lease/duration.js";
export { type ErrorCode, LeaseholdError, errorCodes, invalidConfig } from "../lease/errors.js";
export type { Duration, Lease, Leases } from "../lease/types.js";
