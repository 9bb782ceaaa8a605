/** Replicated files. Each file has a primary elected by a lease, on any ground for leases. */
export type { BlockEntry, BlockStore, StoredBlock } from "./ports.js";
export { MemoryBlockStore, type MemoryStoreOptions } from "./memory-store.js";
export { startFiles, type StartFilesOptions } from "./node/start.js";
export type { SecurityOptions } from "leasehold/runtime";
export type { Logger } from "leasehold/runtime";
export { readStream, type ReadStreamOptions, writeStream, type WriteStreamOptions } from "./node/streams.js";
export type {
  AttributeChanges,
  ChangeBatch,
  ChangesOptions,
  FileChange,
  Attributes,
  ChildrenOptions,
  ComposeOptions,
  ConditionOptions,
  CopyOptions,
  Entry,
  EntryList,
  FileCallOptions,
  FileList,
  Files,
  FilesStatus,
  FileStat,
  FileView,
  FolderOptions,
  FolderStat,
  ListFilesOptions,
  MoveOptions,
  NodesChange,
  NodesOptions,
  NodesReport,
  OpenFileOptions,
  PutOptions,
  Quota,
  RemoveOptions,
  ReplicatedFile,
  RequestObserver,
  ServedRequest,
  TouchOptions,
  Usage,
} from "./types.js";
export { FileUncertainError } from "./uncertain.js";
export { type BlockDirectoryOptions, openBlockDirectory } from "./disk/directory-store.js";
export { openUsers, type Users, type UsersOptions } from "./users/users.js";
export { serveS3, type S3Options } from "./s3/server.js";
export type { FrontServer, ListenOptions } from "./webdav/listen.js";
export { serveWebdav, type WebdavOptions, type WebdavServer } from "./webdav/server.js";
