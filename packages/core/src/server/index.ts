export type { CoreFlags, RunningCore } from "./common/api.js";
export { configOf, type CoreConfig } from "./common/config.js";
export { backupStatus, type ReadOptions } from "./backup/read-backup.js";
export { restoreBackup, restoredText } from "./backup/restore.js";
export { startCore } from "./server.js";
