import type { Group } from "./call.js";

export const watches: readonly Group[] = [
  {
    title: "watches tell what was and what is",
    calls: [
      "put w/1 a",
      "put w/2 b",
      "del w/1",
      "put w/1 c",
      { words: "watch w/1 --rev=1", lines: 9 },
      { words: "watch w/ --prefix --rev=1", lines: 12 },
      { words: "watch w/ --prefix --rev=3", lines: 9 },
      { words: "watch w/ --prefix --rev=1 --prev-kv", lines: 14 },
      { words: "watch w/1 w/2 --rev=1", lines: 9 },
      { words: "watch w/2 --rev=1 -w json", lines: 1 },
      { words: "watch w/2 --rev=1 -w fields", lines: 11 },
      { words: "watch w/1 --rev=1 -- echo heard", lines: 12 },
      {
        words: ["watch", "w/1", "--rev=4", "--", "sh", "-c", "echo $ETCD_WATCH_KEY $ETCD_WATCH_VALUE"],
        lines: 8,
      },
      { words: "watch -i", input: "watch w/1 --rev=4\n", lines: 6 },
      { words: "watch -i", input: "watch w/1 --rev=4 -- echo heard\n", lines: 8 },
      { words: "watch -i", input: "watch w/2 --rev=1\nnonsense\n" },
      "watch",
    ],
  },
];
