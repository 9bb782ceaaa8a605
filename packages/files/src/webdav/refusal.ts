/** The end of a request with a status that its client understands; what else is thrown is a fault. */
export class Refusal extends Error {
  readonly status: number;
  /** The element of `DAV:` that names the rule that was broken (RFC 4918, section 16). */
  readonly rule: string | undefined;

  constructor(status: number, message: string, rule?: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
    this.rule = rule;
  }
}
