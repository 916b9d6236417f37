/**
 * Which pods of the tree belong to this agent: an empty file per pod, named by its uid. Another agent, or a kubelet,
 * may have pods in the same tree. The file is written before the group is created, so a group without a file is never
 * ours.
 *
 * A disk that fails must not end the agent: a group that is not swept costs less than a node.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CgroupError } from '../../ports/cgroup-tree.ts';

export interface OwnPods {
  readonly uids: ReadonlySet<string>;
  /** @throws CgroupError when the file cannot be written */
  add(uid: string): void;
  /** A file that cannot be removed is found again by the next agent. */
  remove(uid: string): void;
}

export function ownPods(directory: string): OwnPods {
  const uids = new Set(namesIn(directory));
  return {
    uids,
    add(uid) {
      if (uids.has(uid)) return;
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 });
        writeFileSync(join(directory, uid), '');
      } catch (cause) {
        throw new CgroupError(`the pod cannot be recorded: ${(cause as Error).message}`, { cause });
      }
      uids.add(uid);
    },
    remove(uid) {
      uids.delete(uid);
      try {
        rmSync(join(directory, uid), { force: true });
      } catch {
        return;
      }
    },
  };
}

/** Empty if they cannot be read: groups of these pods then stay until the next start. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
