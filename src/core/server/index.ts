export { configOf, type CoreConfig, type CoreFlags } from "./config.js";
export { type RunningCore, startCore } from "./server.js";
