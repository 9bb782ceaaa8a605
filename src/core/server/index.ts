export { configOf, type CoreConfig, type CoreFlags } from "./common/config.js";
export { type RunningCore, startCore } from "./server.js";
