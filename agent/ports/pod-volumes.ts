/** The directories of volumes on this machine. All calls are synchronous, except those that read whole trees. */

export interface VolumeFile {
  readonly bytes: Uint8Array;
  /** Permission bits. */
  readonly mode: number;
  /** Owner, if it is not the agent. */
  readonly userId?: number;
}

export interface VolumeName {
  readonly podUid: string;
  readonly volume: string;
}

export interface VolumeOptions {
  /** Group that owns the files; undefined: that of the agent. */
  readonly groupId: number | undefined;
  /** On a file system in memory, if the machine has one for this. */
  readonly inMemory: boolean;
}

export interface PodVolumes {
  /** Replaces the files of a volume at once: a reader sees all old ones or all new ones. @throws Error */
  writeFiles(name: VolumeName, files: ReadonlyMap<string, VolumeFile>, options: VolumeOptions): void;
  /** Creates the directory if it does not exist. @throws Error */
  makeEmptyDir(name: VolumeName, options: VolumeOptions): void;
  /** The volume is this directory of the machine, which stays when the pod is removed. @throws Error */
  linkTo(name: VolumeName, path: string): void;
  /** Where it leads; undefined: the volume is no such link. */
  linkedPath(name: VolumeName): string | undefined;
  /** @throws Error with upstream's text if the path is not of this type */
  checkHostPath(path: string, type: string): void;
  /** Real path of a volume that was written or made here. */
  pathOf(name: VolumeName): string;
  /**
   * Real path of a sub path, which is created as a directory if it does not exist.
   *
   * @throws Error if it is outside the volume
   */
  subPathOf(volumePath: string, subPath: string): string;
  /** `<device>:<inode>` of a real path. @throws Error if a part of the path is a link meanwhile */
  identityOf(path: string): string;
  isFile(path: string): boolean;
  /** Bytes on the disk. @throws Error */
  usedBytes(name: VolumeName): Promise<number>;
  /** Removes all volumes of a pod, whatever they contain, without blocking the caller. @throws Error */
  remove(podUid: string): Promise<void>;
  /** Pods with volumes. */
  podUids(): readonly string[];
}
