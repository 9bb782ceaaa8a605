// As TypeScript with the strictest types: what may be left out may also be `undefined`.
import {
  type AcquireOptions,
  type FleaseOptions,
  type Lease,
  type MemberOptions,
  open,
  type OpenOptions,
  startMember,
} from "leasehold";
import { use } from "./use.mjs";

const optional: {
  readonly signal: AbortSignal | undefined;
  readonly text: string | undefined;
  readonly flag: boolean | undefined;
} = { signal: undefined, text: undefined, flag: undefined };
const { signal, text, flag } = optional;

const acquiring: AcquireOptions = { signal, ttl: text, wait: text, maxHold: text, autoRenew: flag };
const opening: OpenOptions = { name: text, label: text, timeout: text };
const client: FleaseOptions = { cluster: text, keyFile: text, renewInWorker: text, tls: undefined };
const member: Omit<MemberOptions, "id" | "members"> = { listen: text, ttlMax: text, insecure: flag };

const leases = await open("memory:typed", opening);
const lease: Lease = await leases.acquire("a", acquiring);
await lease.release();
await leases.lead("b", () => Promise.resolve(), { signal, ttl: text });
await leases.list("", { signal, timeout: text, onIncomplete: undefined });
leases.watch("", { signal });
await leases.close();

const alone = await startMember({ id: "a", members: { a: "127.0.0.1:0" }, ...member });
await alone.close();

console.log(JSON.stringify({ ...(await use()), typed: Object.keys(client).length }));
