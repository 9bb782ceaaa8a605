import type { ConnectionOptions, TlsOptions as TlsServerOptions, TLSSocket } from "node:tls";
import type { AuthFault, Side } from "./auth-fault.js";
import { acceptedKey, keyFor, keyId } from "./cluster-key.js";
import type { ClusterKeys } from "./cluster-key.js";
import type { Credentials, DialingSelf } from "./credentials.js";
import type { FileWatch } from "./file-watch.js";
import type { Proof } from "./proof.js";
import { rolesWithin } from "./roles.js";
import { pskTls } from "../tls.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/**
 * `ROLE@CLUSTER#ID`: the role and the id select the key. The cluster is only used in messages; HELLO is
 * authoritative. Earlier builds send no id and ignore the ones they receive.
 */
function pskIdentity(name: Role, cluster: string, key: Buffer): string {
  return `${name}@${cluster}#${keyId(key)}`;
}

/** The parts of an identity: the claim and the key's id. */
function partsOf(identity: string): { readonly claim: string; readonly id: string | undefined } {
  const [, claim = identity, id] = /^([^]*)#([0-9a-f]{16})$/.exec(identity) ?? [];
  return { claim, id };
}

/** Credentials made of a cluster key, for TLS-PSK. */
export class KeyCredentials implements Credentials {
  readonly #watch: FileWatch<ClusterKeys>;
  readonly #claims = new WeakMap<TLSSocket, string>();
  /** A new key doesn't change the server's options: the key is looked up for each connection. */
  readonly version = 0;

  constructor(watch: FileWatch<ClusterKeys>) {
    this.#watch = watch;
  }

  get participant(): "client" | "observer" {
    return keyFor(this.#watch.current, "client") === undefined ? "observer" : "client";
  }

  serverOptions(): TlsServerOptions {
    return {
      ...pskTls,
      pskCallback: (socket, identity) => {
        const { claim, id } = partsOf(identity);
        this.#claims.set(socket, claim);
        const role = roleNamed(claim);
        return role === undefined ? null : (acceptedKey(this.#watch.current, role, id) ?? null);
      },
    };
  }

  dialOptions({ role, cluster }: DialingSelf): ConnectionOptions {
    return {
      ...pskTls,
      // Without a certificate there is no name to check.
      checkServerIdentity: () => undefined,
      pskCallback: () => {
        const chosen = keyFor(this.#watch.current, role);
        if (chosen === undefined) return null;
        return { psk: chosen.key, identity: pskIdentity(chosen.name, cluster, chosen.key) };
      },
    };
  }

  proofOf(socket: TLSSocket, side: Side): Proof | AuthFault {
    // A handshake with this cipher suite only completes if both sides have the key. Any other connection MUST
    // be refused.
    if (socket.getCipher().name !== pskTls.ciphers)
      return { cause: "method", text: "no cluster key was used" };
    if (socket.isSessionReused()) return { cause: "tls", text: "sessions are not resumed here" };
    // The dialed peer has the same key as this side; a key proves nothing more.
    if (side === "dialing") return { roles, by: "the cluster key" };
    const role = roleNamed(this.#claims.get(socket) ?? "");
    if (role === undefined) return { cause: "key", text: "it names a key that we do not have" };
    return { roles: rolesWithin(role), by: `the ${role} key` };
  }

  claimOf(socket: TLSSocket): string | undefined {
    return this.#claims.get(socket);
  }

  close(): void {
    this.#watch.close();
  }
}

function roleNamed(identity: string): Role | undefined {
  const name = identity.split("@", 1)[0];
  return roles.find((role) => role === name);
}
