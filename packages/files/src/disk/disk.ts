/**
 * What a node asks of the disk below its directory, so that tests can stop it at any call. Names are ours
 * alone and never a user's; they are relative to the directory.
 */
export interface Disk {
  /** Opens a file for reading and writing; makes it if it is missing. */
  open(name: string): Promise<DiskFile>;
  /** The names in a folder, `""` for the directory itself; none if the folder is missing. */
  names(folder: string): Promise<readonly string[]>;
  /** Does nothing if it is there. */
  makeFolder(folder: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Does nothing if it is missing. */
  remove(name: string): Promise<void>;
  /** What was made, renamed and removed in the folder survives a loss of power from now on. */
  syncFolder(folder: string): Promise<void>;
  /** Bytes that may still be written. */
  free(): Promise<number>;
}

export interface DiskFile {
  /** Fills the bytes from a position on, as far as the file goes; says how many it has filled. */
  read(bytes: Uint8Array, position: number): Promise<number>;
  /** Writes all of the bytes, or fails and may have written some. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** What was written and cut before survives a loss of power from now on. */
  sync(): Promise<void>;
  truncate(bytes: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}
