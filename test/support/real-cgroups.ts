/** A group of this machine's cgroup v2, for tests that need the kernel: root and a writable hierarchy. */
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { findCgroupDirectory, WANTED_CONTROLLERS } from '../../agent/adapters/cgroup/find-tree.ts';
import { UnifiedTree, writeFault } from '../../agent/adapters/cgroup/unified-tree.ts';

const found = findCgroupDirectory({ fileRoot: '/', cgroupRoot: '' });

/** Why the kernel's groups cannot be used here; undefined if they can. */
export const cgroupsMissing: string | undefined =
  found.kind === 'missing' ? found.why : writeFault(found.directory) && 'control groups cannot be written';

/** How the reason of the skip begins. */
export const NO_CGROUPS = 'no writable cgroup v2';

let made = 0;

export interface RealGroup {
  readonly directory: string;
  readonly tree: UnifiedTree;
  /** Below the root of the hierarchy, as /proc/self/cgroup has it. */
  readonly path: string;
  dispose(): void;
}

export function realGroup(killFile?: string): RealGroup {
  if (found.kind === 'missing') throw new Error(found.why);
  made += 1;
  const name = `nodekeeper-test-${process.pid}-${made}`;
  // Passes the controllers down, as the unit of pods has them by its delegation.
  new UnifiedTree(found.directory, WANTED_CONTROLLERS);
  const directory = join(found.directory, name);
  mkdirSync(directory);
  const tree = new UnifiedTree(directory, WANTED_CONTROLLERS, killFile);
  return {
    directory,
    tree,
    path: `/${name}`,
    dispose() {
      for (const each of readdirSync(directory, { withFileTypes: true })) {
        if (!each.isDirectory()) continue;
        tree.kill(each.name);
        for (let attempt = 0; attempt < 1_000 && !tree.remove(each.name); attempt += 1);
      }
      rmdirSync(directory);
    },
  };
}
