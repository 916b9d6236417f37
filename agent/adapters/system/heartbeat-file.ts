/**
 * The last answered heartbeat, in a file system in memory where there is one.
 *
 * It is not synced. After a power cut it has another boot id, is torn or absent, and that is the same to its reader.
 */
import { join } from 'node:path';
import type { HeartbeatFile } from '../../ports/heartbeat-file.ts';
import { type HeartbeatOrigin, heartbeatText, parseHeartbeat } from '../../rules/offline-stop.ts';
import type { Owner } from '../../rules/remembered-state.ts';
import { rename, writeFile } from './files.ts';
import { textOf } from './state-file.ts';

/**
 * Agents of several nodes on one machine share the directory.
 *
 * @param bootId differs after each start of the machine; '' if it is unknown. It may throw
 */
export function heartbeatFile(directory: string, { nodeName, clusterId }: Owner, bootId: () => string): HeartbeatFile {
  const origin = (): HeartbeatOrigin => ({ nodeName, clusterId, bootId: bootId() });
  const name = `heartbeat-${encodeURIComponent(nodeName)}.json`;
  const path = join(directory, name);
  const next = join(directory, `.tmp-${name}`);
  return {
    async read(nowUptimeMs) {
      const text = await textOf(path);
      return text === undefined ? undefined : parseHeartbeat(text, origin(), nowUptimeMs);
    },
    async write(heartbeat) {
      await writeFile(next, heartbeatText(origin(), heartbeat), { mode: 0o600 });
      await rename(next, path);
    },
  };
}
