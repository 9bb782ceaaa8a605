import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { LeaseholdError } from "leasehold/common";

/** As an etcd keeps passwords: which cost, and 22 and 31 characters of salt and hash. */
const form = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/** Each one more takes twice as long. etcd takes 10 unless it is told otherwise; with this it is a second or two. */
const costMax = 14;

/** A thread that takes so long is ended, ms. */
const threadMs = 30_000;

/** For CommonJS, as code without a file is. */
const compare = `
const { parentPort, workerData } = require("node:worker_threads");
const { compareSync } = require(workerData.module);
parentPort.postMessage(compareSync(workerData.password, workerData.secret));
`;

/** A secret that came with a backup of an etcd. */
export function isBcrypt(secret: string): boolean {
  return form.test(secret);
}

/**
 * Whether a password is right. A thread of its own computes it: on that of the server, heartbeats would wait.
 *
 * @throws LeaseholdError `UNSUPPORTED` for a secret that takes too long
 */
export async function isRightByBcrypt(password: string, secret: string): Promise<boolean> {
  if (Number(form.exec(secret)![1]) > costMax)
    throw new LeaseholdError("UNSUPPORTED", `a user's bcrypt secret has a cost beyond ${costMax}`);
  const module = createRequire(import.meta.url).resolve("bcryptjs");
  return (await inThread(compare, { password, secret, module })) as boolean;
}

/** What a thread says first. Each has one of its own: whatever ends it ends this wait, and nobody else's. */
export function inThread(code: string, workerData: unknown, mostMs = threadMs): Promise<unknown> {
  const worker = new Worker(code, { eval: true, workerData });
  const late = setTimeout(() => void worker.terminate(), mostMs);
  return new Promise((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
    worker.once("exit", (status) => {
      clearTimeout(late);
      reject(new Error(`the thread that looks at a password has ended with ${status}`));
    });
  });
}
