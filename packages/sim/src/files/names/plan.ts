import { filesCounters } from "../plan.js";

export const namesCounters = () => ({
  ...filesCounters(),
  put: 0,
  read: 0,
  append: 0,
  remove: 0,
  rename: 0,
  copy: 0,
  list: 0,
  quota: 0,
  snapshot: 0,
  unsnapshot: 0,
  overQuota: 0,
  brokenOff: 0,
  stalled: 0,
  collected: 0,
  followed: 0,
  resumed: 0,
  gone: 0,
});

export type NamesCounters = ReturnType<typeof namesCounters>;
