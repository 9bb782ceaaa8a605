import { LeaseholdError } from "leasehold/common";

/** A change of a file with an unknown outcome: `FILE_UNCERTAIN`. */
export class FileUncertainError extends LeaseholdError {
  /**
   * True: the file's primary has given up, so the next successful operation finds the change done, or it
   * never will be. False: the primary did not answer in time, or the caller stopped waiting, and the change
   * may still be done later.
   */
  readonly isSettledByNext: boolean;

  constructor(message: string, isSettledByNext: boolean, options?: ErrorOptions) {
    super("FILE_UNCERTAIN", message, options);
    this.name = "FileUncertainError";
    this.isSettledByNext = isSettledByNext;
  }
}
