import { afterAll, expect, test } from "vitest";
import { loopbacks } from "../../../../../test/support/loopbacks.js";
import { Authority } from "../../../../../test/support/pki.js";
import type { AllowedNames, TlsFiles } from "../wire/tls/tls-files.js";
import { Listener } from "../wire/listen.js";
import { dial } from "./sockets.js";

const authority = new Authority();
afterAll(() => authority.remove());
const usage = "extendedKeyUsage = serverAuth, clientAuth";
const issue = (names: string) => authority.issue([`subjectAltName = ${names}`, usage]);
const [both, other] = [issue("IP:127.0.0.1, DNS:localhost"), issue("IP:127.0.0.1")];
const nameOf = ({ cert }: typeof both) => /([^/]+)\.pem$/.exec(cert)![1]!;

const files = (own: typeof both, allowed?: AllowedNames, crlFile?: string): TlsFiles => ({
  certFile: own.cert,
  keyFile: own.key,
  trustedCaFile: own.ca,
  clientCertAuth: true,
  allowed,
  crlFile,
});

/** The outcome of a connection: the objection of either side, if any. */
async function meet(listening: TlsFiles, dialling: TlsFiles, host = "127.0.0.1"): Promise<string> {
  const url = { host, port: 0, isTls: true };
  let refused = "";
  const listener = await Listener.open(
    url,
    listening,
    { handshakeMs: 5_000 },
    {
      admit: () => true,
      accepted: (socket) => void socket.on("error", () => undefined).write("welcome"),
      failed: (error) => (refused = `listener: ${error.message}`),
    },
  );
  const said = await new Promise<string>((resolve) => {
    const socket = dial({ ...url, port: listener.port }, dialling, () => undefined);
    let problem = "";
    socket.on("error", (error) => (problem = error.message));
    socket.on("data", () => {
      resolve("");
      socket.destroy();
    });
    socket.on("close", () => resolve(problem === "" ? "closed" : problem));
  });
  listener.close();
  return refused === "" ? said : refused;
}

test("naming an authority admits no other certificates, even if certificates do not name users", async () => {
  const stranger = new Authority("/CN=somebody else");
  const own = stranger.issue(["extendedKeyUsage = clientAuth"]);
  const asked = { ...files(both), clientCertAuth: false };
  expect(await meet(asked, files(other))).toBe("");
  expect(await meet(asked, { ...files(own), trustedCaFile: both.ca })).toMatch(/^listener: ./);
  stranger.remove();
});

const hosts = { kind: "host", names: ["example.com", "localhost"] } as const;
const commonName = { kind: "common name", names: [nameOf(both)] } as const;

test.each([
  ["nothing is demanded", undefined],
  ["a host", hosts],
  ["an address", { kind: "host", names: ["127.0.0.1"] } as const],
  ["a common name", commonName],
])("%s: who has it is let in, and lets in", async (_what, allowed) => {
  expect(await meet(files(both, allowed), files(both, allowed))).toBe("");
});

test.each([
  ["host", hosts],
  ["common name", commonName],
])("who has no %s that is allowed is refused, on either side", async (kind, allowed) => {
  const text = `client certificate authentication failed: no ${kind} of it is allowed`;
  expect(await meet(files(both, allowed), files(other))).toBe(`listener: ${text}`);
  expect(await meet(files(other), files(both, allowed))).toBe(text);
});

test("a star in a certificate matches a whole label of an allowed name, as in Go", async () => {
  const allowed = { kind: "host", names: ["core1.example.com"] } as const;
  const [whole, part] = [
    issue("IP:127.0.0.1, DNS:*.example.com"),
    issue("IP:127.0.0.1, DNS:core*.example.com"),
  ];
  expect(await meet(files(both, allowed), files(whole))).toBe("");
  expect(await meet(files(both, allowed), files(part))).toMatch(/no host of it is allowed/);
});

test("a revoked certificate is refused on either side, even if the list is outdated", async () => {
  const gone = issue("IP:127.0.0.1");
  const crl = authority.revoke(gone, -1);
  expect(await meet(files(both, undefined, crl), files(other, undefined, crl))).toBe("");
  expect(await meet(files(both, undefined, crl), files(gone))).toMatch(/^listener: .* was revoked$/);
  expect(await meet(files(gone), files(both, undefined, crl))).toMatch(/^the certificate .* was revoked$/);
});

test.each(loopbacks())(
  "a server at the address %s is verified by its certificate's list of names",
  async (host) => {
    const own = issue(`IP:${host}`);
    expect(await meet(files(own), files(own), host)).toBe("");
    const others = issue("IP:192.0.2.1, DNS:localhost");
    expect(await meet(files(others), files(own), host)).toMatch(/does not match certificate's altnames/);
  },
);
