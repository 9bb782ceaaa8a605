import type { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { DetailedPeerCertificate, TLSSocket } from "node:tls";
import type { AllowedNames } from "./config.js";
import { type Revoked, serialText } from "./revoked.js";

/** A chain is no longer. */
const chainMax = 10;

/**
 * Why a certificate that the other side has shown is not enough, though an authority vouches for it; empty if
 * it is. Who has not been asked for one has shown none.
 */
export function objectionTo(
  socket: TLSSocket,
  allowed: AllowedNames | undefined,
  revoked: Revoked | undefined,
): string {
  if (revoked !== undefined) {
    const serial = serialsOf(socket).find((each) => revoked.serials.has(each));
    if (serial !== undefined) return `the certificate with the serial number ${serial} was taken back`;
  }
  if (allowed === undefined) return "";
  const certificate = socket.getPeerX509Certificate();
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
      ? // As Go has it: the common name is none of a host.
        certificate.checkHost(name, { subject: "never" }) !== undefined
      : certificate.checkIP(name) !== undefined,
  );
}

/** Of its own, and of those that stand between it and the authority. */
function serialsOf(socket: TLSSocket): string[] {
  const serials: string[] = [];
  let next = socket.getPeerCertificate(true) as Partial<DetailedPeerCertificate> | null;
  for (let count = 0; count < chainMax && next?.serialNumber !== undefined; count += 1) {
    serials.push(serialText(next.serialNumber));
    if (next.issuerCertificate === next) break;
    next = next.issuerCertificate ?? null;
  }
  return serials;
}
