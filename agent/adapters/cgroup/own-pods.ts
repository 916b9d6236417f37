/**
 * Which pods of the tree belong to this agent: an empty file per pod, named by its uid. Another agent, or a kubelet, may
 * have pods in the same tree. The file is written before the group is created, so a group without a file is never ours.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface OwnPods {
  readonly uids: ReadonlySet<string>;
  add(uid: string): void;
  remove(uid: string): void;
}

/** @throws Error of the file system when the directory cannot be created or read */
export function ownPods(directory: string): OwnPods {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const uids = new Set(readdirSync(directory));
  return {
    uids,
    add(uid) {
      if (uids.has(uid)) return;
      writeFileSync(join(directory, uid), '');
      uids.add(uid);
    },
    remove(uid) {
      rmSync(join(directory, uid), { force: true });
      uids.delete(uid);
    },
  };
}
