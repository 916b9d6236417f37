/** The directories of the volumes that this machine makes for claims. Their content outlives pods and the agent. */
export interface ClaimDirectories {
  /**
   * Creates the directory if it does not exist, for every user, limited to these bytes where the file system can.
   * It may be repeated at any time. @throws Error of the file system
   */
  make(volumeName: string, bytes: number): Promise<MadeDirectory>;
  /** Removes it with all that it contains. Does nothing if there is none. @throws Error of the file system */
  remove(volumeName: string): Promise<void>;
  /** Free bytes of the file system that has the directories. @throws Error of the file system */
  freeBytes(): number;
}

export interface MadeDirectory {
  readonly path: string;
  /** Why its size is not limited; undefined: it is. */
  readonly unlimited: string | undefined;
}
