/** Directories on a file system in memory: for secrets, which must not reach a disk, and for what is of one boot. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectory } from '../../../shared/host/directory.ts';

/** File system types of statfs(2): tmpfs, ramfs. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);
const DEFAULT_DIRECTORY = '/run/nodekeeper';

/**
 * Undefined if the machine has none for the agent: its content is then in rootDirectory.
 *
 * @param name below the directory of the agent
 * @param runtimeDirectory that of the systemd unit, which outlives a restart of the agent
 */
export function memoryDirectory(
  name: 'volumes' | 'heartbeat',
  runtimeDirectory = process.env['RUNTIME_DIRECTORY'],
): string | undefined {
  const path = join(runtimeDirectory?.split(':', 1)[0] || DEFAULT_DIRECTORY, name);
  try {
    makeDirectory(path, 0o700);
    return IN_MEMORY.has(statfsSync(path).type) ? path : undefined;
  } catch {
    return undefined;
  }
}
