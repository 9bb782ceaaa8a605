/** Ends a request with a status for the client. All other errors are faults. */
export class Refusal extends Error {
  readonly status: number;
  /** The element of `DAV:` that names the violated precondition (RFC 4918, section 16). */
  readonly rule: string | undefined;

  constructor(status: number, message: string, rule?: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
    this.rule = rule;
  }
}
