import type { OptionNames } from "../../lease/option-names.js";
import { participantOptionNames } from "../../runtime/options.js";
import type { SecurityOptions } from "../../runtime/security/options.js";
import type { FleaseOptions, MemberOptions } from "./types.js";

const security: OptionNames<SecurityOptions> = { tls: true, key: true, keyFile: true };

export const fleaseOptionNames: OptionNames<FleaseOptions> = {
  ...participantOptionNames,
  ...security,
  cluster: true,
  role: true,
  renewInWorker: true,
};

export const memberOptionNames: OptionNames<MemberOptions> = {
  ...security,
  id: true,
  members: true,
  label: true,
  listen: true,
  cluster: true,
  cellSize: true,
  ttlMax: true,
  maxClockSkew: true,
  clockRateError: true,
  rpcTimeout: true,
  resourcesMax: true,
  viewsFile: true,
  initialClusterState: true,
  insecure: true,
  logger: true,
};
