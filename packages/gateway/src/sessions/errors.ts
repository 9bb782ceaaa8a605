/** The error codes that only a gateway has. All others are the library's. */
export const gatewayCodes = {
  SESSION_GONE:
    "The gateway has no such session: it has expired or was closed, the gateway has restarted, or it is another client's.",
  KEY_REUSED: "The idempotency key was used before, with another request.",
} as const;

export type GatewayCode = keyof typeof gatewayCodes;

export class GatewayError extends Error {
  readonly code: GatewayCode;

  constructor(code: GatewayCode, message: string = gatewayCodes[code]) {
    super(message);
    this.name = "GatewayError";
    this.code = code;
  }
}
