import { once } from "node:events";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { LeaseholdError } from "../../../lease/errors.js";

/** As an etcd keeps passwords: which cost, and 22 and 31 characters of salt and hash. */
const form = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/** Each one more takes twice as long. etcd takes 10 unless it is told otherwise; with this it is a second or two. */
const costMax = 14;

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
 * @throws LeaseholdError `UNSUPPORTED` without the package, and for a secret that takes too long
 */
export async function isRightByBcrypt(password: string, secret: string): Promise<boolean> {
  if (Number(form.exec(secret)![1]) > costMax)
    throw new LeaseholdError("UNSUPPORTED", `a user's bcrypt secret has a cost beyond ${costMax}`);
  const worker = new Worker(compare, { eval: true, workerData: { password, secret, module: place() } });
  const [isRight] = (await once(worker, "message")) as [boolean];
  return isRight;
}

function place(): string {
  try {
    return createRequire(import.meta.url).resolve("bcryptjs");
  } catch (cause) {
    const why = "the password of a user who came from an etcd cannot be checked: npm install bcryptjs";
    throw new LeaseholdError("UNSUPPORTED", why, { cause });
  }
}
