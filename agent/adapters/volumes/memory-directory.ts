/** A directory on a file system in memory, for secrets: they must not reach a disk. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../system/directory.ts';

/** File system types of statfs(2): tmpfs, ramfs. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);
const DEFAULT_DIRECTORY = '/run/nodekeeper';

/**
 * Undefined if the machine has none for the agent: secrets are then in rootDirectory.
 *
 * @param runtimeDirectory that of the systemd unit, which outlives a restart of the agent
 */
export function memoryDirectory(runtimeDirectory = process.env['RUNTIME_DIRECTORY']): string | undefined {
  const path = join(runtimeDirectory?.split(':', 1)[0] || DEFAULT_DIRECTORY, 'volumes');
  try {
    makeDirectory(path, 0o700);
    return IN_MEMORY.has(statfsSync(path).type) ? path : undefined;
  } catch {
    return undefined;
  }
}
