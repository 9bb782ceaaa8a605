/**
 * One call of `etcdctl`, as words with spaces between them, or as a list of words. `$NAME` is what an earlier
 * call of the group has kept under that name.
 */
export interface Call {
  readonly words: string | readonly string[];
  /** Given on standard input, which is closed then. */
  readonly input?: string;
  /** What of its output later calls use: the first bracket of each pattern. */
  readonly keep?: Readonly<Record<string, RegExp>>;
  /** It does not end by itself: it is ended when so many lines have been written, or after some seconds. */
  readonly lines?: number;
  /** Why ours says something else. A call that is listed and does not differ makes the test red. */
  readonly differs?: string;
  /** Why only the exit code is compared. */
  readonly onlyExit?: string;
  /** Why nothing is compared. */
  readonly onlyRun?: string;
}

/** Calls one after another, on servers of their own. */
export interface Group {
  readonly title: string;
  readonly servers?: number;
  readonly flags?: readonly string[];
  readonly calls: readonly (string | Call)[];
}
