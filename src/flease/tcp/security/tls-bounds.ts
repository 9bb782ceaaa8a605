import { constants } from "node:crypto";

/**
 * No session is resumed, because a resumed one would outlive the certificate that it began with, and nothing is
 * negotiated a second time. Connections here live long, so neither is missed.
 */
export const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;
