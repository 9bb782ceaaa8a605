import { readFileSync } from "node:fs";
import { connect as connectTcp, createServer as createTcpServer } from "node:net";
import { connect as connectTls, createServer as createTlsServer, } from "node:tls";
import { LeaseholdError } from "../../../lease/errors.js";
const minVersion = "TLSv1.2";
/** Who has not shown by then who it is, is nobody, ms. */
const handshakeMs = 5_000;
/** How often a server looks whether its certificate has been renewed, ms. */
export const renewMs = 10_000;
/** @throws LeaseholdError `INVALID_CONFIG` */
export function readTlsFile(path) {
    try {
        return readFileSync(path);
    }
    catch (error) {
        throw new LeaseholdError("INVALID_CONFIG", `${path} cannot be read: ${error.message}`);
    }
}
/** Calls `ready` when bytes can be sent. */
export function dial(url, tls, ready) {
    const { host, port, isTls } = url;
    if (!isTls)
        return connectTcp({ host, port, noDelay: true }, ready);
    const files = tls && filesOf(tls);
    // Without a certificate of our own, too: the other side says what it wants.
    return connectTls({ host, port, servername: host, minVersion, ...files }, ready).setNoDelay(true);
}
export function createListener(url, tls, accepted, failed) {
    if (!url.isTls || tls === undefined)
        return createTcpServer({ noDelay: true }, accepted);
    const { clientCertAuth } = tls;
    const asking = { requestCert: clientCertAuth, rejectUnauthorized: clientCertAuth };
    const options = { ...filesOf(tls), ...asking, minVersion, noDelay: true, handshakeTimeout: handshakeMs };
    const server = createTlsServer(options, accepted);
    renew(server, tls);
    return server.on("tlsClientError", failed);
}
/** Certificates are renewed while a server runs: those who come afterwards are shown the new one. */
function renew(server, tls) {
    let shown = filesOf(tls);
    const looking = setInterval(() => {
        try {
            const files = filesOf(tls);
            if (isSame(files, shown))
                return;
            server.setSecureContext({ ...files, minVersion });
            shown = files;
        }
        catch {
            // They are just being written, or do not fit each other yet: the next look will tell, and until then the old ones are shown.
        }
    }, renewMs).unref();
    server.once("close", () => clearInterval(looking));
}
function filesOf(tls) {
    return { cert: readTlsFile(tls.certFile), key: readTlsFile(tls.keyFile), ...authority(tls) };
}
function isSame(one, other) {
    const isAuthoritySame = one.ca === undefined || other.ca === undefined || one.ca.equals(other.ca);
    return one.cert.equals(other.cert) && one.key.equals(other.key) && isAuthoritySame;
}
/** Resolves when it listens. */
export async function listen(server, { host, port }) {
    await new Promise((resolve, reject) => {
        server.once("error", (error) => reject(new LeaseholdError("INVALID_CONFIG", `cannot listen on ${host}:${port}: ${error.message}`)));
        server.listen({ host, port }, resolve);
    });
}
function authority({ trustedCaFile }) {
    return trustedCaFile === undefined ? {} : { ca: readTlsFile(trustedCaFile) };
}
