export type { CoreFlags, RunningCore } from "./common/api.js";
export { configOf, type CoreConfig } from "./common/config.js";
export { startCore } from "./server.js";
