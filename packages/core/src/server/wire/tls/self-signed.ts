import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";

/** A self-signed certificate. */
export interface SelfSigned {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/**
 * A certificate of version 3 (RFC 5280) is a few values in DER. This is all of that encoding that it needs.
 */
function der(tag: number, parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const digits = length.subarray(length.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([tag, 0x80 | digits.length]), digits, content]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, parts);
const set = (part: Uint8Array) => der(0x31, [part]);
const octets = (content: Uint8Array) => der(0x04, [content]);
/** A bit string with this many unused bits at its end. */
const bits = (content: Uint8Array, unused = 0) => der(0x03, [Buffer.from([unused]), content]);
const utf8 = (text: string) => der(0x0c, [Buffer.from(text)]);
const oid = (hex: string) => der(0x06, [Buffer.from(hex, "hex")]);
const yes = der(0x01, [Buffer.from([0xff])]);

const oids = {
  organization: oid("55040a"),
  ecdsaWithSha256: oid("2a8648ce3d040302"),
  keyUsage: oid("551d0f"),
  extendedKeyUsage: oid("551d25"),
  serverAuth: oid("2b06010505070301"),
  clientAuth: oid("2b06010505070302"),
  subjectAltName: oid("551d11"),
};

/** Years up to 2049 have two digits, later ones four. */
function time(ms: number): Buffer {
  const text = `${new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, "")}`;
  return new Date(ms).getUTCFullYear() < 2050
    ? der(0x17, [Buffer.from(text.slice(2), "latin1")])
    : der(0x18, [Buffer.from(text, "latin1")]);
}

/** A host name or address, as clients compare it. */
function altName(host: string): Buffer {
  if (isIPv4(host)) return der(0x87, [Buffer.from(host.split(".").map(Number))]);
  if (isIPv6(host)) return der(0x87, [ipv6Bytes(host)]);
  return der(0x82, [Buffer.from(host, "latin1")]);
}

function ipv6Bytes(host: string): Buffer {
  // Only hexadecimal digits, without a zone.
  const text = new URL(`http://[${host.replace(/%.*$/, "")}]`).hostname.slice(1, -1);
  const [head = "", tail] = text.split("::");
  const groups = (part: string) =>
    part === "" ? [] : part.split(":").map((each) => Number.parseInt(each, 16));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  const bytes = Buffer.alloc(16);
  for (const [index, group] of [...before, ...zeros, ...after].entries())
    bytes.writeUInt16BE(group, 2 * index);
  return bytes;
}

/**
 * Generates a key (P-256), and a self-signed certificate for servers and clients.
 *
 * @param hosts names and addresses in the certificate
 */
export function selfSigned(hosts: readonly string[], fromMs: number, toMs: number): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const serial = randomBytes(16);
  // Makes the number positive, without a redundant zero.
  serial[0] = (serial[0]! & 0x3f) | 0x40;
  const name = sequence(set(sequence(oids.organization, utf8("leasehold"))));
  const algorithm = sequence(oids.ecdsaWithSha256);
  const digitalSignature = bits(Buffer.from([0x80]), 7);
  const extensions = sequence(
    sequence(oids.keyUsage, yes, octets(digitalSignature)),
    sequence(oids.extendedKeyUsage, octets(sequence(oids.serverAuth, oids.clientAuth))),
    sequence(oids.subjectAltName, octets(der(0x30, hosts.map(altName)))),
  );
  const content = sequence(
    der(0xa0, [der(0x02, [Buffer.from([2])])]),
    der(0x02, [serial]),
    algorithm,
    name,
    sequence(time(fromMs), time(toMs)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, [extensions]),
  );
  const signature = sign("sha256", content, privateKey);
  const cert = sequence(content, algorithm, bits(signature));
  return {
    cert: pem("CERTIFICATE", cert),
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
  };
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}
