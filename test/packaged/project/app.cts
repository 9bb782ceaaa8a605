// As TypeScript that becomes CommonJS.
import { open } from "leasehold";

export async function take(): Promise<string> {
  const leases = await open("memory:typed");
  const lease = await leases.acquire("a");
  await lease.release();
  await leases.close();
  return lease.resource;
}
