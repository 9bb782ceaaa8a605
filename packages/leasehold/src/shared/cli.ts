/**
 * Code shared by the commands of Leasehold's packages: exit codes, output, signals. Internal to those
 * packages: it may change in any release.
 */
export {
  type CoreReport,
  type GroundStatus,
  type ServerReport,
  groundStatus,
} from "../cli/commands/ground-status.js";
export { withLeases } from "../cli/common/connection.js";
export { Interrupt, ifAborted } from "../cli/common/interrupt.js";
export { Command, InvalidArgumentError, Option } from "../cli/common/commander.js";
export {
  type Finish,
  examples,
  logFormatOption,
  logLevelOption,
  metricsOption,
} from "../cli/command-help.js";
export { type ExitName, exitCode } from "../cli/common/exit-codes.js";
export { CommandFailure, describeFailure, usageError } from "../cli/common/failure.js";
export { type LogFlags, lineLogger, requestedLogger, serverLogger } from "../cli/common/log-options.js";
export { serveMetrics } from "../cli/common/metrics.js";
export { printErrorLine } from "../cli/common/write.js";
export { notifyParent } from "../cli/common/parent-process.js";
export { securityOf } from "../cli/common/security-options.js";
export { configFailure } from "../cli/common/config-faults.js";
export { type OutputFormat, type Settings, type SharedOptions, settingsOf } from "../cli/common/settings.js";
export { listenToSignals } from "../cli/common/signals.js";
export { stopRequested } from "../cli/common/stop-requested.js";
export { type ServiceManager, notifySystemd } from "../cli/common/systemd.js";
export { addressesOf, checkMember } from "../cli/commands/peer-config.js";
export { checkedBy } from "../cli/settings/checks.js";
export { reloadSettings } from "../cli/settings/reload.js";
export { settingOption } from "../cli/settings/setting-option.js";
export { type Paint, paintFor } from "../cli/output/ansi.js";
export { cellsOf, cut, pad, printable, unpainted } from "../cli/output/cells.js";
export { toJson } from "../cli/output/json.js";
export { type Presentation, present, shortTime } from "../cli/output/present.js";
export { printError, printLine, printLines, printProgress } from "../cli/output/print.js";
export { type Cell, type Column, tableLines } from "../cli/output/table.js";
export { freePorts } from "../cli/up/ports.js";
export { Processes } from "../cli/up/processes.js";
export { clockTime, drainingBar } from "../cli/up/screen.js";
export { Terminal, isQuit } from "../cli/up/terminal.js";
