import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Authority } from "../../../../../../test/support/pki.js";
import type { TlsFiles } from "./tls-files.js";
import { Listener } from "../listen.js";

/**
 * A root, and an intermediate authority that has issued both sides' certificates. `twin` is another
 * certificate of the intermediate.
 */
const root = new Authority("/CN=root");
const middle = new Authority("/CN=middle");
const leaf = middle.issue(["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"]);
const above = root.vouchFor(middle);
const twin = root.vouchFor(middle, { fromDays: -3, toDays: -1 });
let nothing: string;
let crl: string;
beforeAll(() => {
  const other = root.issue([]);
  nothing = join(root.folder, "nothing.pem");
  writeFileSync(nothing, readFileSync(root.revoke(other)));
  crl = root.revoke({ cert: above });
});
afterAll(() => {
  for (const authority of [root, middle]) authority.remove();
});

const chain = (...files: readonly string[]) => Buffer.concat(files.map((file) => readFileSync(file)));

function files(crlFile: string, trusted: readonly string[] = [root.caFile]): TlsFiles {
  const [certFile, trustedCaFile] = [join(root.folder, "shown.pem"), join(root.folder, "trusted.pem")];
  writeFileSync(certFile, chain(leaf.cert, above));
  writeFileSync(trustedCaFile, chain(...trusted));
  return { certFile, keyFile: leaf.key, trustedCaFile, clientCertAuth: false, crlFile };
}

interface Meeting {
  /** Empty if the client was accepted. */
  readonly refusal: string;
  readonly session: Buffer | undefined;
  readonly isResumed: boolean;
}

type Version = "TLSv1.2" | "TLSv1.3";

/** The outcome for a client that shows these certificates. */
async function meet(
  listener: { readonly port: number; refusal: string },
  cert: Buffer,
  maxVersion: Version = "TLSv1.3",
  session?: Buffer,
): Promise<Meeting> {
  listener.refusal = "";
  let [kept, isResumed]: [Buffer | undefined, boolean] = [undefined, false];
  const key = readFileSync(leaf.key);
  const shown = { cert, key, rejectUnauthorized: false, maxVersion, ...(session && { session }) };
  const socket = connect({ host: "127.0.0.1", port: listener.port, ...shown }, () => {
    isResumed = socket.isSessionReused();
  });
  socket.on("session", (each) => (kept = each));
  socket.on("error", () => undefined).resume();
  await new Promise((resolve) => socket.once("close", resolve));
  return { refusal: listener.refusal, session: kept, isResumed };
}

async function listening(tls: TlsFiles): Promise<{ port: number; refusal: string } & Disposable> {
  const url = { host: "127.0.0.1", port: 0, isTls: true };
  const listener = await Listener.open(
    url,
    tls,
    { handshakeMs: 5_000 },
    {
      admit: () => true,
      accepted: (socket) => void socket.on("error", () => undefined).end("welcome"),
      failed: ({ message }) => (open.refusal = message),
    },
  );
  const open = { port: listener.port, refusal: "", [Symbol.dispose]: () => listener.close() };
  return open;
}

test("a revoked intermediate authority is refused, at any position", async () => {
  const shown = chain(leaf.cert, above);
  const unseen = chain(leaf.cert);
  const hidden = chain(leaf.cert, twin, above);
  {
    using listener = await listening(files(nothing));
    expect(await meet(listener, shown)).toMatchObject({ refusal: "" });
  }
  {
    using listener = await listening(files(crl));
    expect((await meet(listener, shown)).refusal).toMatch(/was revoked/);
    expect((await meet(listener, hidden)).refusal).toMatch(/leads to no authority|was revoked/);
  }
  // The server has the intermediate itself, so the client need not show it.
  using trusting = await listening(files(crl, [root.caFile, above]));
  expect((await meet(trusting, unseen)).refusal).toMatch(/was revoked/);
  using still = await listening(files(nothing, [root.caFile, above]));
  expect((await meet(still, unseen)).refusal).toBe("");
});

test.each<Version>(["TLSv1.2", "TLSv1.3"])(
  "a session is not resumed without its chain: %s",
  async (version) => {
    const tls = files(nothing);
    using listener = await listening(tls);
    const first = await meet(listener, chain(leaf.cert, above), version);
    const second = await meet(listener, chain(leaf.cert, above), version, first.session);
    expect([first.refusal, second.refusal, second.isResumed]).toEqual(["", "", false]);
  },
);

test("a chain that is too long is refused", async () => {
  using listener = await listening(files(nothing));
  const [own, round] = [chain(leaf.cert, above), chain(middle.vouchFor(root), above)];
  expect(await meet(listener, Buffer.concat([own, ...Array<Buffer>(3).fill(round)]))).toMatchObject({
    refusal: "",
  });
  const { refusal } = await meet(listener, Buffer.concat([own, ...Array<Buffer>(6).fill(round)]));
  expect(refusal).toBe("more than 10 certificates were shown");
});
