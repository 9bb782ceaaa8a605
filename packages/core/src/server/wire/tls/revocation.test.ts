import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { X509Certificate } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { Authority } from "../../../../../../test/support/pki.js";
import { readRevoked, serialText } from "./revocation.js";

const authority = new Authority();
const usage = ["extendedKeyUsage = clientAuth"];
const [one, two, three] = [authority.issue(usage), authority.issue(usage), authority.issue(usage)];
afterAll(() => authority.remove());

const serialOf = ({ cert }: { readonly cert: string }) =>
  serialText(new X509Certificate(readFileSync(cert)).serialNumber);
const derOf = (pem: string) => execFileSync("openssl", ["crl", "-in", pem, "-outform", "der"]);

test("a list made by openssl is read, as PEM and as DER, and has the time of its next update", () => {
  const empty = execFileSync(
    "openssl",
    [
      "ca",
      "-gencrl",
      "-crldays",
      "3",
      "-cert",
      "ca.pem",
      "-keyfile",
      "ca.key",
      "-config",
      one.cert.replace(/pem$/, "cnf"),
    ],
    { cwd: authority.folder, stdio: ["ignore", "pipe", "ignore"] },
  );
  expect(readRevoked(empty, "x").serials.size).toBe(0);
  authority.revoke(one);
  const path = authority.revoke(two, -2);
  const pem = readFileSync(path);
  for (const file of [pem, derOf(path)]) {
    const { nextUpdateMs, serials } = readRevoked(file, "x");
    expect([...serials].toSorted()).toEqual([serialOf(one), serialOf(two)].toSorted());
    expect(serials.has(serialOf(three))).toBe(false);
    expect(Math.abs(nextUpdateMs - (Date.now() - 2 * 86_400_000))).toBeLessThan(600_000);
  }
  // Several lists in one file are combined.
  const both = readRevoked(Buffer.concat([empty, pem]), "x");
  expect(both.serials.size).toBe(2);
});

test("a truncated or changed list is refused, or read completely", () => {
  const der = derOf(authority.revoke(three));
  const whole = readRevoked(der, "x").serials.size;
  for (let length = 0; length < der.length; length += 1)
    expect(() => readRevoked(der.subarray(0, length), "the file")).toThrow(
      /the file is no list of revoked certificates/,
    );
  const other = "-----BEGIN CERTIFICATE-----\nAA==\n";
  expect(() => readRevoked(Buffer.from(`${other}-----END CERTIFICATE-----\n`), "x")).toThrow(/it has none/);
  expect(() => readRevoked(Buffer.from(other), "x")).toThrow(/is not whole/);
  expect(() => readRevoked(Buffer.from(`${other}-----END CERTIFICATE-----\n# end\n`), "x")).toThrow(
    /it has none/,
  );
  expect(() => readRevoked(readFileSync(one.cert), "x")).toThrow(/is no list/);
  expect(whole).toBe(3);
});

test("a file of several lists that is half written or damaged is refused", () => {
  const list = readFileSync(authority.revoke(authority.issue(usage))).toString();
  const end = list.trimEnd().length;
  for (let length = 1; length < end; length += 7)
    expect(() => readRevoked(Buffer.from(list + list.slice(0, length)), "x")).toThrow(/is no list/);
  for (const damage of ["\n!", "\nAA", "\n=="]) {
    const damaged = list.replace("\n", damage);
    expect(() => readRevoked(Buffer.from(damaged), "x")).toThrow(/is no list/);
  }
});

/** A DER list with one serial number; the rest is as small as possible. */
function listOf(serial: string): Buffer {
  const der = (tag: string, content: string) =>
    tag + (content.length / 2).toString(16).padStart(2, "0") + content;
  const sequence = (...parts: string[]) => der("30", parts.join(""));
  const time = der("17", Buffer.from("261123000000Z").toString("hex"));
  const entries = sequence(sequence(der("02", serial), time));
  return Buffer.from(
    sequence(sequence(sequence(), sequence(), time, entries), sequence(), der("03", "00")),
    "hex",
  );
}

/** As DER in a list, and as OpenSSL prints it for a certificate. */
test.each([
  ["fb", "-05"],
  ["00fb", "FB"],
  ["ff00", "-0100"],
  ["05", "05"],
  ["00", "00"],
  ["0a0b", "0A0B"],
])("the serial number %s of a list is that of a certificate, %s", (der, certificate) => {
  expect([...readRevoked(listOf(der), "x").serials]).toEqual([serialText(certificate)]);
});
