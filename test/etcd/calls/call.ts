/**
 * One call of `etcdctl`, as words separated by spaces, or as a list of words. `$NAME` stands for the text
 * that an earlier call of the group has kept under this name.
 */
export interface Call {
  readonly words: string | readonly string[];
  /** Written to standard input, which is then closed. */
  readonly input?: string;
  /** Parts of the output for later calls: the first capture group of each pattern. */
  readonly keep?: Readonly<Record<string, RegExp>>;
  /** For a call that does not end by itself: it is ended after this many lines, or after some seconds. */
  readonly lines?: number;
  /** Why our output differs. A listed call that does not differ fails the test. */
  readonly differs?: string;
  /** Why only the exit code is compared. */
  readonly onlyExit?: string;
  /** Why nothing is compared. */
  readonly onlyRun?: string;
}

/** Sequential calls, on separate servers. */
export interface Group {
  readonly title: string;
  readonly servers?: number;
  readonly flags?: readonly string[];
  readonly calls: readonly (string | Call)[];
}
