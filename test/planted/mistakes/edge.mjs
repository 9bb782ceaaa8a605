/** Mistakes at the doors of a core's server: who is let in, and how many. */

const shown = "src/core/server/common/shown.ts";
const shownTest = { file: "src/core/server/common/shown.test.ts" };
const socketsTest = { file: "src/core/server/peers/sockets.test.ts" };

export const atTheEdge = /** @type {const} */ ([
  {
    name: "connectionsUnbounded",
    why: "However many connections are open, one more is taken.",
    edits: [
      {
        file: "src/core/server/front/connections.ts",
        find: "!this.#shares.take(from, 1)",
        replace: "this.#shares.take(from, 1) && false",
      },
    ],
    caughtBy: { file: "src/core/server/front/front.test.ts" },
  },
  {
    name: "anyNameAllowed",
    why: "A certificate of the authority is enough, whatever names are in it.",
    edits: [
      {
        file: shown,
        find: "certificate !== undefined && fits(certificate, allowed)",
        replace: "allowed !== undefined",
      },
    ],
    caughtBy: socketsTest,
  },
  {
    name: "certificateNotAsked",
    why: "Who names an authority gets clients without certificates, unless they are users by them.",
    edits: [
      {
        file: "src/core/server/common/config.ts",
        find: "clientCertAuth || trustedCaFile !== undefined",
        replace: "clientCertAuth",
      },
    ],
    caughtBy: socketsTest,
  },
  {
    name: "revokedAccepted",
    why: "A certificate that was taken back is good enough.",
    edits: [{ file: shown, find: "chain.find(isRevoked)", replace: "undefined" }],
    caughtBy: socketsTest,
  },
  {
    name: "revokedHidden",
    why: "An authority that was taken back is not found behind another certificate of it.",
    edits: [{ file: shown, find: "leadsToRoot(own, above, trusted)", replace: "above.length >= 0" }],
    caughtBy: shownTest,
  },
  {
    name: "sessionsWithoutChains",
    why: "A session is resumed, and nobody sees by which authorities it was begun.",
    edits: [
      {
        file: "src/core/server/common/listener.ts",
        find: "constants.SSL_OP_NO_TICKET",
        replace: "0",
      },
    ],
    caughtBy: shownTest,
  },
  {
    name: "listWaitsForCertificate",
    why: "A new list of revoked certificates counts only once a new certificate fits its key.",
    edits: [
      {
        file: "src/core/server/common/tls.ts",
        find: "take(renewed, revokedNow(tls, shown.ca));",
        replace: "if (renewed !== undefined) take(renewed, revokedNow(tls, shown.ca));",
      },
    ],
    caughtBy: { file: "src/core/server/common/listener.test.ts" },
  },
  {
    name: "halfAList",
    why: "What a list of revoked certificates says up to where it is cut off counts as the whole.",
    edits: [
      {
        file: "src/core/server/common/pem.ts",
        find: '!isWhole || blocks.length !== text.split("-----BEGIN").length - 1',
        replace: "text.length === 0",
      },
    ],
    caughtBy: { file: "src/core/server/common/revoked.test.ts" },
  },
]);
