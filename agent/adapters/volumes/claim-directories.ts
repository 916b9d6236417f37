/** Directories for claims: `<rootDirectory>/claims/<volume>`. No removal of a pod reaches them. */
import { chmodSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import type { ClaimDirectories } from '../../ports/claim-directories.ts';
import { makeDirectory } from '../system/directory.ts';
import { removeTree } from './remove-tree.ts';

/** Who runs in the pod is not known. As k3s' local-path. */
const DIRECTORY_MODE = 0o777;
/** Only the agent enters it: a container sees its volume through a mount. */
const ROOT_MODE = 0o700;

export function claimDirectories(rootDirectory: string): ClaimDirectories {
  const root = join(rootDirectory, 'claims');
  return {
    make(volumeName) {
      makeDirectory(root, ROOT_MODE);
      const path = join(root, volumeName);
      makeDirectory(path, DIRECTORY_MODE);
      // The mask of the process has no part in it.
      chmodSync(path, DIRECTORY_MODE);
      return path;
    },
    remove: (volumeName) => removeTree(join(root, volumeName)),
    freeBytes() {
      makeDirectory(root, ROOT_MODE);
      const { bavail, bsize } = statfsSync(root);
      return bavail * bsize;
    },
  };
}
