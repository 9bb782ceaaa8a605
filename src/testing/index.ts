export { MemoryCluster, type MemoryClusterOptions } from "./memory-cluster.js";
export { VirtualWorld } from "./virtual-world.js";
