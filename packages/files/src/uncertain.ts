import { LeaseholdError } from "leasehold/common";

/** The outcome of a change to a file is unknown: `FILE_UNCERTAIN`. */
export class FileUncertainError extends LeaseholdError {
  /**
   * True: the file's primary has given up, so the next successful operation shows whether the change
   * happened, and it won't happen after that. False: the primary did not answer in time, or the caller
   * stopped waiting; the change may still happen later.
   */
  readonly isSettledByNext: boolean;

  constructor(message: string, isSettledByNext: boolean, options?: ErrorOptions) {
    super("FILE_UNCERTAIN", message, options);
    this.name = "FileUncertainError";
    this.isSettledByNext = isSettledByNext;
  }
}
