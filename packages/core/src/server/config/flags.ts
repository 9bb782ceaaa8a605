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
   * Makes this server the only one of a new core, with the content of its disk, after a permanent loss of the
   * others. Entries that only they had are lost.
   */
  readonly forceNewCluster?: boolean | undefined;
  readonly initialClusterToken?: string | undefined;
  readonly heartbeatInterval?: string | undefined;
  readonly electionTimeout?: string | undefined;
  readonly snapshotCount?: string | undefined;
  /** Compares the keys with those of the other servers before serving clients. */
  readonly experimentalInitialCorruptCheck?: boolean | undefined;
  /**
   * Interval at which the leader compares the keys of all servers: a time such as `10m`; `0s` means never.
   */
  readonly experimentalCorruptCheckTime?: string | undefined;
  readonly autoCompactionMode?: string | undefined;
  readonly autoCompactionRetention?: string | undefined;
  readonly quotaBackendBytes?: string | undefined;
  readonly maxTxnOps?: string | undefined;
  readonly maxRequestBytes?: string | undefined;
  readonly maxConcurrentStreams?: string | undefined;
  readonly authToken?: string | undefined;
  readonly authTokenTtl?: string | undefined;
  /** The server generates its own certificate, for clients or for servers. Peers cannot verify it. */
  readonly autoTls?: boolean | undefined;
  readonly peerAutoTls?: boolean | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly trustedCaFile?: string | undefined;
  readonly clientCertAuth?: boolean | undefined;
  readonly clientCrlFile?: string | undefined;
  /** Clients' certificates must have one of these hosts; separated by commas. */
  readonly clientCertAllowedHostname?: string | undefined;
  readonly peerCertFile?: string | undefined;
  readonly peerKeyFile?: string | undefined;
  readonly peerTrustedCaFile?: string | undefined;
  readonly peerClientCertAuth?: boolean | undefined;
  readonly peerCrlFile?: string | undefined;
  /** The other servers' certificates must have one of these common names, or hosts. */
  readonly peerCertAllowedCn?: string | undefined;
  readonly peerCertAllowedHostname?: string | undefined;
  /** Go's names of cipher suites, separated by commas: no others are used. */
  readonly cipherSuites?: string | undefined;
  /** Allowed origins of pages, separated by commas. Default: all. */
  readonly cors?: string | undefined;
  /** Allowed host names of the server over plain HTTP/1.1, separated by commas. Default: all. */
  readonly hostWhitelist?: string | undefined;
  /** `debug`, `info`, `warn` or `error`. */
  readonly logLevel?: string | undefined;
  /** `json`, or `text`, which etcd calls `console`. Only for the command. */
  readonly logFormat?: string | undefined;
  /**
   * `default`, `stdout`, `stderr` or files, separated by commas. Only for the command: a program passes its
   * own `logger`.
   */
  readonly logOutputs?: string | undefined;
  /** Allows plain TCP beyond loopback. etcd does not have this flag. */
  readonly insecure?: boolean | undefined;
}

/** A running server of the core. */
export interface RunningCore {
  readonly name: string;
  readonly id: bigint;
  readonly cluster: bigint;
  /** Addresses for clients, as in the member list. */
  readonly clientUrls: readonly string[];
  /** Whether this server follows a leader, or leads. Without a leader it serves no linearizable requests. */
  readonly hasLeader: boolean;
  /** Rejects with the error that made the server stop; never resolves. */
  readonly failed: Promise<never>;
  /** Transfers leadership, answers pending requests, and leaves nothing open. Idempotent. */
  close(): Promise<void>;
}
