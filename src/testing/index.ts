/** For tests of programs that use leases, and of grounds that provide them. */
export {
  type ConformanceCase,
  conformanceCases,
  type ConformanceGround,
  runConformance,
  type TestFramework,
} from "./conformance.js";
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
