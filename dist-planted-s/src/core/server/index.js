export { configOf } from "./config.js";
export { startCore } from "./server.js";
