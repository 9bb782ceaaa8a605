import { resourcesMax } from "../sessions/limits.js";
import type { Fields } from "./schema.js";

/** The most characters of a name. Names have at most 512 bytes. */
export const nameLengthMax = 512;

const resource = {
  type: "string",
  lengthMax: nameLengthMax,
  description: "The name of the resource: 1 to 512 bytes of UTF-8 without control characters.",
} as const;
const ttl = {
  type: "duration",
  description:
    "The session, and with it its leases, end when nothing is heard of it for so long: 1 s to 1 h. Default: the ground's longest ttl.",
} as const;

export const sessionFields = { ttl } satisfies Fields;

export const acquireFields = {
  resource,
  resources: {
    type: "array",
    lengthMax: nameLengthMax,
    max: resourcesMax,
    description: "Several names, acquired together or not at all, in place of resource.",
  },
  session: {
    type: "string",
    lengthMax: 128,
    description:
      "The session that is to have it. Default: a new one, which ends with the last of these leases.",
  },
  ttl: { ...ttl, description: `Without a session. ${ttl.description}` },
  wait: {
    type: "duration",
    description: "How long to wait for it. Default 1m; 0 does not wait.",
  },
  maxHold: {
    type: "duration",
    description: "The lease ends so long after it was acquired, whatever happens.",
  },
  limit: {
    type: "integer",
    min: 1,
    max: 64,
    description: "A counted lease: so many holders at a time.",
  },
  mode: {
    type: "string",
    choices: ["shared", "exclusive"],
    description: "Of names that end with /~rw: beside other readers, or alone.",
  },
  fair: { type: "boolean", description: "Wait in order." },
  data: { type: "json", description: "Up to 1,024 bytes of JSON, for others to read." },
} satisfies Fields;

export const resourceFields = { resource: { ...resource, isRequired: true } } satisfies Fields;

export const cancelFields = {
  key: { type: "string", lengthMax: 255, isRequired: true, description: "The idempotency key of the call." },
} satisfies Fields;

export const handOverFields = {
  ...resourceFields,
  to: {
    type: "string",
    lengthMax: 1_024,
    isRequired: true,
    description: "Who shall have it next: a participant that waits, by its holder, its host or its note.",
  },
} satisfies Fields;
