/** For tests of programs that use leases, and of grounds that provide them. */
export {
  type ConformanceCase,
  conformanceCases,
  type ConformanceGround,
  runConformance,
  type TestFramework,
} from "./conformance.js";
export { MemoryCluster, type MemoryClusterOptions } from "./memory-cluster.js";
export { VirtualWorld } from "./virtual-world.js";
