/** Directories for claims: `<rootDirectory>/claims/<volume>`. No removal of a pod reaches them. */
import { chmodSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';
import type { ClaimDirectories } from '../../ports/claim-directories.ts';
import { syncDirectory } from '../system/state-file.ts';
import { type ProjectQuotas, projectQuotas } from './project-quota.ts';
import { removeTree } from './remove-tree.ts';

/** Who runs in the pod is not known. As k3s' local-path. */
const DIRECTORY_MODE = 0o777;
/** Only the agent enters it: a container sees its volume through a mount. */
const ROOT_MODE = 0o700;

export const claimsRoot = (rootDirectory: string): string => join(rootDirectory, 'claims');

export function claimDirectories(rootDirectory: string, quotas: ProjectQuotas = projectQuotas()): ClaimDirectories {
  const root = claimsRoot(rootDirectory);
  return {
    async make(volumeName, bytes) {
      makeDirectory(root, ROOT_MODE);
      const path = join(root, volumeName);
      makeDirectory(path, DIRECTORY_MODE);
      const fault = await quotas.limit(path, bytes);
      // The mask of the process has no part in it.
      chmodSync(path, DIRECTORY_MODE);
      // Its mode was changed last: with it, the journal has the limit, before the API has the volume.
      await syncDirectory(path);
      return { path, unlimited: fault?.why };
    },
    async remove(volumeName) {
      const path = join(root, volumeName);
      await quotas.release(path);
      await removeTree(path);
    },
    freeBytes() {
      makeDirectory(root, ROOT_MODE);
      const { bavail, bsize } = statfsSync(root);
      return bavail * bsize;
    },
  };
}
