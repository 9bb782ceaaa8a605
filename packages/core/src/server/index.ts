export type { CoreFlags, RunningCore } from "./config/flags.js";
export { configOf, type CoreConfig } from "./config/config.js";
export { backupStatus, type ReadOptions } from "./backup/read-backup.js";
export { restoreBackup, restoredText } from "./backup/restore.js";
export { eventLog } from "./log-events.js";
export { startCore } from "./start.js";
