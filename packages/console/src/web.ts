/**
 * The web server that Leasehold's packages share.
 * For those packages only: it may change in any release.
 */
export { WebServer, hostsOf, send } from "./server/web-server.js";
