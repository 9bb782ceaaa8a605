// A function of Lambda or Vercel; the platform starts as many instances as there are requests. The leases are
// in a bucket, so nothing else has to run. The function releases before it answers, because the platform
// stops it afterwards.
import { open } from "leasehold";
import { work } from "./work.mjs";

let opening; // the instance keeps it for later requests

function leases() {
  opening ??= open(process.env.LEASES_BUCKET ?? "delta+s3://leases/app").catch((error) => {
    opening = undefined;
    throw error;
  });
  return opening;
}

export async function handler({ order }) {
  const lease = await (await leases()).tryAcquire(`orders/${order}`);
  if (lease === undefined) return { statusCode: 409, body: "another instance has this order" };
  try {
    await work(`orders/${order}`, lease);
    return { statusCode: 200, body: `done with token ${lease.token}` };
  } finally {
    await lease.release();
  }
}
