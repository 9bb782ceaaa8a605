import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { DetailedPeerCertificate, Server, TLSSocket } from "node:tls";
import type { AllowedNames } from "./tls-files.js";
import { serialText } from "./revocation.js";
import type { RevokedNow } from "./tls.js";

/** Bound of a chain: the certificates shown, and those that TLS has found above them. */
const chainMax = 10;

/** Clients' chains, as of the end of their handshakes. */
const chainsRead = new WeakMap<TLSSocket, readonly X509Certificate[] | undefined>();

/**
 * Reads each client's chain before Node asks for its certificate: some versions (24.21 for one) do so before
 * they emit `secureConnection`, which drops the rest of the chain. `keylog` is the first event that has the
 * socket.
 */
export function readChainsOf(server: Server): void {
  server.on("keylog", (_line, socket) => {
    if (chainsRead.has(socket)) return;
    chainsRead.set(socket, undefined);
    socket.prependOnceListener("secure", () => {
      try {
        chainsRead.set(socket, chainOf(socket));
      } catch {
        // The chain has not been verified. If it is later, `objectionTo` reads it.
      }
    });
  });
}

/**
 * Returns why a peer's verified certificate is not sufficient; empty if it is. A peer that was not asked for
 * a certificate has shown none.
 */
export function objectionTo(
  socket: TLSSocket,
  allowed: AllowedNames | undefined,
  revoked: RevokedNow | undefined,
): string {
  const objection =
    revoked === undefined ? "" : objectionToChain(chainsRead.get(socket) ?? chainOf(socket), revoked);
  if (objection !== "" || allowed === undefined) return objection;
  const [certificate] = chainOf(socket, 1);
  return certificate !== undefined && fits(certificate, allowed)
    ? ""
    : `client certificate authentication failed: no ${allowed.kind} of it is allowed`;
}

function fits(certificate: X509Certificate, { kind, names }: AllowedNames): boolean {
  if (kind === "common name") {
    const { CN } = (certificate.toLegacyObject() as { subject?: { CN?: unknown } }).subject ?? {};
    return typeof CN === "string" && names.includes(CN);
  }
  return names.some((name) =>
    isIP(name) === 0
      ? // As in Go: the common name is not a host, and a star matches a whole label.
        certificate.checkHost(name, { subject: "never", partialWildcards: false }) !== undefined
      : certificate.checkIP(name) !== undefined,
  );
}

/**
 * Returns the peer's own certificate followed by its issuers. Node finds issuers only by name. Reading
 * everything shown, in any order, leaks memory (`getPeerX509Certificate` of Node 20, a certificate per
 * connection).
 */
function chainOf(socket: TLSSocket, max = chainMax + 1): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next = socket.getPeerCertificate(max > 1) as Partial<DetailedPeerCertificate> | null;
  while (chain.length < max && next?.raw !== undefined) {
    chain.push(new X509Certificate(next.raw));
    if (next.issuerCertificate === next) break;
    next = next.issuerCertificate ?? null;
  }
  return chain;
}

/**
 * Revoked certificates are always detected: no certificate of the chain may be revoked, and the chain must
 * lead to an authority. Otherwise a peer with a revoked intermediate could hide it behind another certificate
 * with the same name, or by showing none (in a resumed session).
 */
function objectionToChain(chain: readonly X509Certificate[], { authorities, serials }: RevokedNow): string {
  if (chain.length > chainMax) return `more than ${chainMax} certificates were shown`;
  const isRevoked = ({ serialNumber }: X509Certificate) => serials.has(serialText(serialNumber));
  const revoked = chain.find(isRevoked);
  if (revoked !== undefined)
    return `the certificate with the serial number ${serialText(revoked.serialNumber)} was revoked`;
  const [own] = chain;
  const above = [...chain.filter(({ ca }) => ca), ...authorities].filter(
    (each) => !isRevoked(each) && isValidNow(each),
  );
  const trusted = new Set(authorities.map(({ raw }) => textOf(raw)));
  return own !== undefined && leadsToRoot(own, above, trusted)
    ? ""
    : "its chain leads to no authority, but by a certificate that was revoked or was not shown";
}

/** Visits each certificate once, so that it ends for any number of them. */
function leadsToRoot(own: X509Certificate, above: X509Certificate[], trusted: ReadonlySet<string>): boolean {
  const reached = [own];
  const left = new Set(above);
  for (let next = reached.pop(); next !== undefined; next = reached.pop()) {
    if (trusted.has(textOf(next.raw)) && hasIssued(next, next)) return true;
    for (const each of left) {
      if (!hasIssued(each, next)) continue;
      left.delete(each);
      reached.push(each);
    }
  }
  return false;
}

/** Also checks the signature. */
function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function isValidNow({ validFrom, validTo }: X509Certificate): boolean {
  const nowMs = Date.now();
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}

function textOf(bytes: Buffer): string {
  return bytes.toString("latin1");
}
