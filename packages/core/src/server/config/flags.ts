/** The command line as text, under etcd's names. */
export interface CoreFlags {
  readonly name?: string | undefined;
  readonly dataDir?: string | undefined;
  readonly listenClientUrls?: string | undefined;
  readonly advertiseClientUrls?: string | undefined;
  readonly listenMetricsUrls?: string | undefined;
  readonly listenPeerUrls?: string | undefined;
  readonly initialAdvertisePeerUrls?: string | undefined;
  readonly initialCluster?: string | undefined;
  readonly initialClusterState?: string | undefined;
  /**
   * Makes this server the only one of a new core, with what is on its disk: when the others are lost for good.
   * What only they had is lost.
   */
  readonly forceNewCluster?: boolean | undefined;
  readonly initialClusterToken?: string | undefined;
  readonly heartbeatInterval?: string | undefined;
  readonly electionTimeout?: string | undefined;
  readonly snapshotCount?: string | undefined;
  /** Clients are not served before the keys were found to be those of the other servers. */
  readonly experimentalInitialCorruptCheck?: boolean | undefined;
  /** How often the leader compares the keys of all servers: a time such as `10m`; `0s` is never. */
  readonly experimentalCorruptCheckTime?: string | undefined;
  readonly autoCompactionMode?: string | undefined;
  readonly autoCompactionRetention?: string | undefined;
  readonly quotaBackendBytes?: string | undefined;
  readonly maxTxnOps?: string | undefined;
  readonly maxRequestBytes?: string | undefined;
  readonly maxConcurrentStreams?: string | undefined;
  readonly authToken?: string | undefined;
  readonly authTokenTtl?: string | undefined;
  /** The server makes a certificate for clients, or for servers, itself, and nobody can verify it. */
  readonly autoTls?: boolean | undefined;
  readonly peerAutoTls?: boolean | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly trustedCaFile?: string | undefined;
  readonly clientCertAuth?: boolean | undefined;
  readonly clientCrlFile?: string | undefined;
  /** Of clients' certificates one of these hosts is demanded, separated by commas. */
  readonly clientCertAllowedHostname?: string | undefined;
  readonly peerCertFile?: string | undefined;
  readonly peerKeyFile?: string | undefined;
  readonly peerTrustedCaFile?: string | undefined;
  readonly peerClientCertAuth?: boolean | undefined;
  readonly peerCrlFile?: string | undefined;
  /** Of the other servers' certificates one of these common names, or of these hosts, is demanded. */
  readonly peerCertAllowedCn?: string | undefined;
  readonly peerCertAllowedHostname?: string | undefined;
  /** By Go's names, separated by commas: nothing else is spoken. */
  readonly cipherSuites?: string | undefined;
  /** Origins of pages that may ask, separated by commas. Default: all. */
  readonly cors?: string | undefined;
  /** Names by which the server may be asked over plain HTTP/1.1, separated by commas. Default: all. */
  readonly hostWhitelist?: string | undefined;
  /** `debug`, `info`, `warn` or `error`. */
  readonly logLevel?: string | undefined;
  /** `default`, `stdout`, `stderr` or files, separated by commas: of the command, as a program's `logger` is its own. */
  readonly logOutputs?: string | undefined;
  /** Not etcd's: plain TCP beyond loopback must be asked for. */
  readonly insecure?: boolean | undefined;
}

/** A server of the core that runs. */
export interface RunningCore {
  readonly name: string;
  readonly id: bigint;
  readonly cluster: bigint;
  /** Where clients reach it, as it tells them. */
  readonly clientUrls: readonly string[];
  /** Rejects with what made the server stop; it never resolves. */
  readonly failed: Promise<never>;
  /** Hands over leadership, answers what is under way, and leaves nothing open. Idempotent. */
  close(): Promise<void>;
}
