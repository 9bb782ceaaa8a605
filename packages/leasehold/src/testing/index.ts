/** Tools for testing programs that use leases, and grounds that provide them. */
export {
  type ConformanceCase,
  conformanceCases,
  type ConformanceGround,
  runConformance,
  type TestFramework,
} from "./conformance.js";
export { checkHistory, HistoryJudge } from "./history/judge.js";
export {
  type Decision,
  type Ending,
  type FaultMark,
  type HistoryEntry,
  type HistoryHeader,
  historyLine,
  historyVersion,
  type TenureForm,
  type TenureId,
  type TenureMode,
  type Intervention,
  type Moment,
  type Nanoseconds,
  type Operation,
  type Sample,
  type Trouble,
} from "./history/journals/format.js";
export { type FaultReport } from "./history/faults.js";
export { HistoryError, type JournalReader } from "./history/journals/journal.js";
export { describeReport, type HistoryReport } from "./history/report.js";
export { type Look, type Tenure } from "./history/journals/tenures.js";
export { type Rule, type Violation } from "./history/rules/violation.js";
export {
  checkLinearizable,
  type HistoryOperation,
  type LinearizabilityOptions,
  type LinearizabilityResult,
  type SequentialModel,
} from "./linearizability.js";
export {
  type CasInput,
  type CasOutput,
  casRegisterModel,
  type RegisterInput,
  registerModel,
  type RegisterOutput,
  type TokenGuardInput,
  tokenGuardModel,
  type TokenGuardOutput,
} from "./linearizability-models.js";
export { MemoryCluster, type MemoryClusterOptions } from "./memory-cluster.js";
export { VirtualWorld } from "./virtual-world.js";
