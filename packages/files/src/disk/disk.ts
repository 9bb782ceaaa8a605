/**
 * The file operations of a node in its directory, as an interface so that tests can fail any call. Names
 * never come from users and are relative to the directory.
 */
export interface Disk {
  /** Opens a file for reading and writing; creates it if it is missing. */
  open(name: string): Promise<DiskFile>;
  /** The names in a folder; `""` is the directory itself. Empty if the folder is missing. */
  names(folder: string): Promise<readonly string[]>;
  /** Does nothing if the folder exists. */
  makeFolder(folder: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Does nothing if the file is missing. */
  remove(name: string): Promise<void>;
  /** Makes creations, renames and removals in the folder durable. */
  syncFolder(folder: string): Promise<void>;
  /** The free space in bytes. */
  free(): Promise<number>;
}

export interface DiskFile {
  /** Reads into `bytes` from a position, up to the end of the file. Returns the number of bytes read. */
  read(bytes: Uint8Array, position: number): Promise<number>;
  /** Writes all of the bytes. On failure an unknown part may have been written. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Makes earlier writes and truncations durable. */
  sync(): Promise<void>;
  truncate(bytes: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}
