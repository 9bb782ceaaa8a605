import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { LeaseholdError } from "leasehold/common";

/** etcd's format of password hashes: cost, followed by 22 characters of salt and 31 of hash. */
const form = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/** Each increment doubles the time. etcd's default is 10; this maximum takes a second or two. */
const costMax = 14;

/** Timeout of a thread, ms. */
const threadMs = 30_000;

/** In CommonJS, as code without a file must be. */
const compare = `
const { parentPort, workerData } = require("node:worker_threads");
const { compareSync } = require(workerData.module);
parentPort.postMessage(compareSync(workerData.password, workerData.secret));
`;

/** Whether a secret comes from an etcd backup. */
export function isBcrypt(secret: string): boolean {
  return form.test(secret);
}

/**
 * Whether a password is right. Computed in a separate thread, as heartbeats would otherwise wait.
 *
 * @throws LeaseholdError `UNSUPPORTED` for a secret that takes too long
 */
export async function isRightByBcrypt(password: string, secret: string): Promise<boolean> {
  if (Number(form.exec(secret)![1]) > costMax)
    throw new LeaseholdError("UNSUPPORTED", `a user's bcrypt secret has a cost beyond ${costMax}`);
  const module = createRequire(import.meta.url).resolve("bcryptjs");
  return (await inThread(compare, { password, secret, module })) as boolean;
}

/**
 * Returns the first message of a new thread. Each call has its own thread, so that a crash ends only this
 * wait.
 */
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
