/**
 * What serves the pages of Leasehold's packages to browsers.
 * For those packages only: it may change in any release.
 */
export { WebServer, hostsOf, send } from "./server/web-server.js";
