/**
 * Code on top of Node that Leasehold's packages share: loggers, addresses, TLS, directory locks. Internal to
 * those packages: it may change in any release.
 */
export { type Address, formatAddress, isLoopback, parseAddress, readAddress } from "../runtime/address.js";
export { type Check, healthText } from "../metrics/health.js";
export { DirectoryLock } from "../runtime/directory-lock.js";
export {
  EventLog,
  type EventCatalogue,
  type EventFields,
  type LogLevel,
  logFormats,
  logLevels,
} from "../runtime/event-log.js";
export { type LogEvent, type Logger, silent } from "../runtime/logger.js";
export type { TlsFiles } from "../runtime/options.js";
export { packageVersion } from "../runtime/package-version.js";
export { isPem, textOf } from "../runtime/pem.js";
export { type AuthCause, type AuthFault, handshakeFault } from "../runtime/security/auth-fault.js";
export { certificateSources } from "../runtime/security/certificate-ends.js";
export { proofOfCertificate } from "../runtime/security/certificate.js";
export type { Credentials } from "../runtime/security/credentials.js";
export { FileWatch, watchMs } from "../runtime/security/file-watch.js";
export { foreignRequest, isLoopbackHost } from "../runtime/security/foreign-request.js";
export { loadCredentials } from "../runtime/security/load.js";
export type { SecurityOptions } from "../runtime/security/options.js";
export { type Proof, nothingAsked, unprovenClaim } from "../runtime/security/proof.js";
export { identityProblem } from "../runtime/security/server-identity.js";
export { type ServedPems, watchCertificate } from "../runtime/security/served-certificate.js";
export { TlsAcceptor } from "../runtime/security/tls-acceptor.js";
export { certificateTls, pskTls } from "../runtime/tls.js";
export { realWorld } from "../runtime/world.js";
