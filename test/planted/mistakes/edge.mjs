/** Mistakes at the doors of a core's server: who is let in, and how many. */

const shown = "packages/core/src/server/wire/tls/peer-chain.ts";
const shownTest = { file: "packages/core/src/server/wire/tls/peer-chain.test.ts" };
const socketsTest = { file: "packages/core/src/server/peers/sockets.test.ts" };

const longAnswersTest = { file: "packages/core/src/server/api/calls/answers.test.ts" };

export const atTheEdge = /** @type {const} */ ([
  {
    name: "retainedForEver",
    why: "A long answer keeps what the state has lost, however much that is by now.",
    edits: [
      {
        file: "packages/core/src/state/revisions.ts",
        find: "this.losses.removedBytes += sizeOf(version);",
        replace: ";",
      },
    ],
    caughtBy: longAnswersTest,
  },
  {
    name: "stateAbandonedForFree",
    why: "A long answer keeps a whole state after a snapshot has taken its place.",
    edits: [
      {
        file: "packages/core/src/state/revisions.ts",
        find: "this.losses.removedBytes += this.bytes;",
        replace: ";",
      },
    ],
    caughtBy: longAnswersTest,
  },
  {
    name: "treesForFree",
    why: "Long answers keep as many trees as they like, each of another moment.",
    edits: [
      {
        file: "packages/core/src/server/api/calls/answers.ts",
        find: "untaken.charge.tryAdd(more)",
        replace: "true",
      },
    ],
    caughtBy: longAnswersTest,
  },
  {
    name: "answersRevoked",
    why: "An unread answer is cut off when others take what is free, although it takes no more itself.",
    edits: [
      {
        file: "packages/core/src/server/api/calls/answers.ts",
        find: "untaken.charge.tryAdd(more)",
        replace: "this.#room.tryTake(clientOf(call), more)",
      },
    ],
    caughtBy: longAnswersTest,
  },
  {
    name: "writesUnanswered",
    why: "What was carried out is refused as if it were not, while its client has not taken other answers.",
    edits: [
      {
        file: "packages/core/src/server/api/calls/answers.ts",
        find: "!isLong || hasWritten(answer)",
        replace: "!isLong",
      },
    ],
    caughtBy: longAnswersTest,
  },
  {
    name: "closedTrafficForgotten",
    why: "Bytes of a connection count no more when it is closed: a counter falls.",
    edits: [
      {
        file: "packages/core/src/server/wire/traffic.ts",
        find: "this.#closed = added(this.#closed, socket);",
        replace: ";",
      },
    ],
    caughtBy: { file: "packages/core/src/server/api/http/metrics.test.ts" },
  },
  {
    name: "failuresOfWritesAreReads",
    why: "A write that ends without an answer counts as a read.",
    edits: [
      {
        file: "packages/core/src/replica/client-requests.ts",
        find: "pending.command === undefined && !pending.isUnclear",
        replace: "true",
      },
    ],
    caughtBy: { file: "packages/core/src/server/api/http/metrics.test.ts" },
  },
  {
    name: "piecesWithoutEnd",
    why: "One piece of a long answer goes through all keys that were deleted.",
    edits: [
      {
        file: "packages/core/src/state/long-range.ts",
        at: "if (last < 0 || this.#visits[last]! >= pieceVisits ||",
        find: "this.#visits[last]! >= pieceVisits",
        replace: "false",
      },
    ],
    caughtBy: { file: "packages/core/src/state/long-range.test.ts" },
  },
  {
    name: "connectionsUnbounded",
    why: "However many connections are open, one more is taken.",
    edits: [
      {
        file: "packages/core/src/server/accounts/connections.ts",
        find: "!this.#room.tryTake(from, 1)",
        replace: "this.#room.tryTake(from, 1) && false",
      },
    ],
    caughtBy: { file: "packages/core/src/server/wire/port.test.ts" },
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
        file: "packages/core/src/server/wire/tls/tls-files.ts",
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
        file: "packages/core/src/server/wire/listen.ts",
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
        file: "packages/core/src/server/wire/tls/tls.ts",
        find: "take(renewed, revokedNow(tls, shown.ca, report));",
        replace: "if (renewed !== undefined) take(renewed, revokedNow(tls, shown.ca, report));",
      },
    ],
    caughtBy: { file: "packages/core/src/server/wire/listen.test.ts" },
  },
  {
    name: "halfAList",
    why: "What a list of revoked certificates says up to where it is cut off counts as the whole.",
    edits: [
      {
        file: "packages/core/src/server/wire/tls/pem.ts",
        find: '!isWhole || blocks.length !== text.split("-----BEGIN").length - 1',
        replace: "text.length === 0",
      },
    ],
    caughtBy: { file: "packages/core/src/server/wire/tls/revocation.test.ts" },
  },
  {
    name: "passwordsByPort",
    why: "Who opens many connections has as many turns at passwords.",
    edits: [
      { file: "packages/core/src/server/auth/passwords.ts", find: "hostOf(client)", replace: "client" },
    ],
    caughtBy: { file: "packages/core/src/server/auth/passwords.test.ts" },
  },
  {
    name: "unknownUsersAtOnce",
    why: "For a user who is not there no password is looked at: the time tells who is.",
    edits: [
      {
        file: "packages/core/src/replica/read-answers.ts",
        find: "auth.secretAfter(name)",
        replace: "new Uint8Array(0)",
      },
    ],
    caughtBy: { file: "packages/core/src/replica/rights.test.ts", test: /of a user who is not there/ },
  },
  {
    name: "threadEndsUnheard",
    why: "A thread that ends without a word has looked at the password.",
    edits: [
      {
        file: "packages/core/src/server/auth/bcrypt.ts",
        find: "reject(new Error(`the thread that looks at a password has ended with ${status}`));",
        replace: "resolve(status === 0);",
      },
    ],
    caughtBy: { file: "packages/core/src/server/auth/passwords.test.ts", test: /a thread that ends/ },
  },
]);
