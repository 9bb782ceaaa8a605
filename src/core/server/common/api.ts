/** The command line as text, under etcd's names. */
export interface CoreFlags {
  readonly name?: string;
  readonly dataDir?: string;
  readonly listenClientUrls?: string;
  readonly advertiseClientUrls?: string;
  readonly listenPeerUrls?: string;
  readonly initialAdvertisePeerUrls?: string;
  readonly initialCluster?: string;
  readonly initialClusterState?: string;
  readonly initialClusterToken?: string;
  readonly heartbeatInterval?: string;
  readonly electionTimeout?: string;
  readonly snapshotCount?: string;
  readonly autoCompactionMode?: string;
  readonly autoCompactionRetention?: string;
  readonly quotaBackendBytes?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly trustedCaFile?: string;
  readonly clientCertAuth?: boolean;
  readonly peerCertFile?: string;
  readonly peerKeyFile?: string;
  readonly peerTrustedCaFile?: string;
  readonly peerClientCertAuth?: boolean;
  /** Not etcd's: plain TCP beyond loopback must be asked for. */
  readonly insecure?: boolean;
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
