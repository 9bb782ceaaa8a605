export { type FenceCode, fenceCodes, FenceError } from "./errors.js";
export type { Fence } from "./fence.js";
export { checkToken, parseToken, tokenInGeneration, tokenMax } from "./token.js";
