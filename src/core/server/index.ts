export type { CoreFlags, RunningCore } from "./common/api.js";
export { configOf, type CoreConfig } from "./common/config.js";
export { type Backup, readBackup } from "./backup/backup-file.js";
export { restoreBackup, restoredText } from "./backup/restore.js";
export { startCore } from "./server.js";
