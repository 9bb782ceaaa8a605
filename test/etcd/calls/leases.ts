import type { Group } from "./call.js";

const id = / ([0-9a-f]{8,16}) /;

export const leases: readonly Group[] = [
  {
    title: "leases are granted, refreshed, shown and revoked",
    calls: [
      { words: "lease grant 60", keep: { L: id } },
      { words: "lease grant 60 -w json", onlyExit: "the id is random" },
      { words: "lease grant 1" },
      "lease grant 0",
      "lease grant -1",
      "lease grant x",
      "lease grant 9000000001",
      "lease grant",
      "put leased a --lease=$L",
      "put leased2 b --lease=$L",
      "get leased -w fields",
      { words: "lease timetolive $L --keys", onlyExit: "etcd names keys in no order" },
      "lease timetolive $L",
      { words: "lease timetolive $L -w json --keys", onlyExit: "etcd names keys in no order" },
      "lease keep-alive $L --once",
      "lease keep-alive $L --once -w json",
      "lease keep-alive 1234 --once",
      "lease timetolive 1234",
      "lease timetolive 1234 -w json",
      "lease timetolive",
      "lease timetolive xyz",
      "lease revoke $L",
      "lease revoke $L",
      "lease revoke 1234",
      "lease revoke xyz",
      "get leased",
      "lease keep-alive",
    ],
  },
  {
    title: "leases are listed",
    calls: [
      "lease list",
      { words: "lease grant 100", keep: { A: id } },
      "lease list",
      "lease list -w json",
      "put x y --lease=$A",
      { words: "put x z --ignore-lease" },
      "get x -w fields",
      "put x w",
      "lease revoke $A",
      "get x",
      "lease list",
    ],
  },
];
