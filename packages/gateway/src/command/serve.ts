import {
  Interrupt,
  type LogFlags,
  type SharedOptions,
  exitCode,
  ifAborted,
  notifySystemd,
  printLine,
  serverLogger,
  settingsOf,
  usageError,
  withLeases,
} from "leasehold/cli";
import { startGateway } from "../index.js";

interface GatewayCommandOptions extends SharedOptions, LogFlags {
  readonly address: string;
  readonly usersFile?: string;
  readonly tlsCertificate?: string;
  readonly tlsPrivateKey?: string;
  readonly clientCa?: string;
  readonly insecure?: boolean;
  readonly jwtKeys?: string;
  readonly jwtIssuer?: string;
  readonly jwtAudience?: string;
}

/** Serves the gateway until a signal. */
export async function serveGateway(options: GatewayCommandOptions): Promise<number> {
  const { address, usersFile, tlsCertificate: cert, tlsPrivateKey: key, clientCa, insecure } = options;
  if ((cert === undefined) !== (key === undefined))
    throw usageError("--tls-certificate and --tls-private-key go together");
  if (clientCa !== undefined && cert === undefined) throw usageError("--client-ca needs --tls-certificate");
  const { jwtKeys: keys, jwtIssuer: issuer, jwtAudience: audience } = options;
  const jwt =
    keys !== undefined && issuer !== undefined && audience !== undefined
      ? { keys, issuer, audience }
      : undefined;
  if (jwt === undefined && [keys, issuer, audience].some((each) => each !== undefined))
    throw usageError("--jwt-keys, --jwt-issuer and --jwt-audience go together");
  const settings = settingsOf(options);
  const logger = serverLogger(options);
  using interrupt = new Interrupt();
  const { signal } = interrupt;
  const work = withLeases(
    settings,
    async (leases, metrics) => {
      const gateway = await startGateway(leases, {
        address,
        usersFile,
        jwt,
        insecure,
        logger,
        metrics,
        ...(cert !== undefined && key !== undefined && { tls: { cert, key, clientCa } }),
      });
      const manager = notifySystemd({ checks: () => [] });
      printLine(`the gateway is at ${gateway.url}`);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      manager.stopping();
      await gateway.close();
    },
    signal,
  );
  await work.catch(ifAborted(signal, () => undefined));
  return exitCode("ok");
}
