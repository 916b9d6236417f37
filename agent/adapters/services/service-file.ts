/**
 * The last known Services in a file of this machine, for one node of one cluster. The address at which it answers names
 * is first in it: whoever removes all that Services need finds it there, install.sh too.
 */
import { join } from 'node:path';
import { recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { RememberedServices, ServiceMemory } from '../../app/services/service-rules.ts';
import type { AgentConfig } from '../../config.ts';
import { rm } from '../system/files.ts';
import { type StateFile, stateFile } from '../system/state-file.ts';

const NAME = 'services.json';
/** Another layout is not read: the machine then waits for the API. */
const LAYOUT = 1;

const pathOf = (rootDirectory: string): string => join(rootDirectory, NAME);
const fileOf = (rootDirectory: string): StateFile => stateFile(pathOf(rootDirectory), `.tmp-${NAME}`);

export function serviceFile(
  { rootDirectory, nodeName, clusterId }: Pick<AgentConfig, 'rootDirectory' | 'nodeName' | 'clusterId'>,
  dnsAddress: string,
  log: Log,
): ServiceMemory {
  const file = fileOf(rootDirectory);
  const owner = { layout: LAYOUT, nodeName, clusterId };
  return {
    async read() {
      try {
        const text = await file.read();
        if (text === undefined) return undefined;
        const { dnsAddress: _, remembered, ...found } = recordOf(JSON.parse(text));
        if (JSON.stringify(found) !== JSON.stringify(owner)) throw new Error(`it is for ${JSON.stringify(found)}`);
        return remembered as RememberedServices;
      } catch (cause) {
        log.warn('the Services on the disk cannot be used; they are read from the cluster', { cause });
        return undefined;
      }
    },
    write: (remembered) => file.write(JSON.stringify({ dnsAddress, ...owner, remembered })),
  };
}

/** The address at which this machine answered names; undefined: it did not route Services. @throws Error of the disk */
export async function servedAddress(rootDirectory: string): Promise<string | undefined> {
  const text = await fileOf(rootDirectory).read();
  return text === undefined ? undefined : textOf(recordOf(JSON.parse(text))['dnsAddress']);
}

export const removeServiceFile = (rootDirectory: string): Promise<void> => rm(pathOf(rootDirectory), { force: true });
