/**
 * What an agent keeps for the next one of the same boot, in a file system in memory where there is one: the last
 * answered heartbeat, and the permits of the hub of the site.
 *
 * They are not synced. After a power cut a file has another boot id, is torn or absent, and that is the same to its
 * reader.
 */
import { join } from 'node:path';
import type { HeartbeatFile } from '../../ports/heartbeat-file.ts';
import type { PermitFile } from '../../ports/permit-file.ts';
import {
  type HeartbeatOrigin,
  heartbeatText,
  parseHeartbeat,
  parsePermits,
  permitsText,
} from '../../rules/offline-stop.ts';
import type { Owner } from '../../rules/remembered-state.ts';
import { rename, writeFile } from './files.ts';
import { textOf } from './state-file.ts';

/**
 * Agents of several nodes on one machine share the directory.
 *
 * @param bootId differs after each start of the machine; '' if it is unknown. It may throw
 */
export const heartbeatFile = (directory: string, owner: Owner, bootId: () => string): HeartbeatFile =>
  fileOfBoot(join(directory, `heartbeat-${encodeURIComponent(owner.nodeName)}.json`), originOf(owner, bootId), {
    parse: parseHeartbeat,
    print: heartbeatText,
  });

/** As `heartbeatFile`. */
export const permitFile = (directory: string, owner: Owner, bootId: () => string): PermitFile =>
  fileOfBoot(join(directory, `permits-${encodeURIComponent(owner.nodeName)}.json`), originOf(owner, bootId), {
    parse: parsePermits,
    print: permitsText,
  });

const originOf =
  ({ nodeName, clusterId }: Owner, bootId: () => string) =>
  (): HeartbeatOrigin => ({ nodeName, clusterId, bootId: bootId() });

function fileOfBoot<T>(
  path: string,
  origin: () => HeartbeatOrigin,
  form: {
    readonly parse: (text: string, origin: HeartbeatOrigin, nowUptimeMs: number) => T | undefined;
    readonly print: (origin: HeartbeatOrigin, value: T) => string;
  },
) {
  return {
    async read(nowUptimeMs: number): Promise<T | undefined> {
      const text = await textOf(path);
      return text === undefined ? undefined : form.parse(text, origin(), nowUptimeMs);
    },
    async write(value: T): Promise<void> {
      await writeFile(`${path}.tmp`, form.print(origin(), value), { mode: 0o600 });
      await rename(`${path}.tmp`, path);
    },
  };
}
