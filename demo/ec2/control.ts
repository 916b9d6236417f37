/** Commands to the EC2 of a running demonstration, over its control socket. */

import { defined } from '../../shared/defined.ts';
import type { InstanceState } from '../../shared/fleet/instances/instance.ts';
import { type Control, type ControlOutcome, sendControl, serveControl } from '../../shared/host/control-socket.ts';
import { selectNames } from '../fleet/names.ts';
import type { DemoCloud } from './demo-cloud.ts';
import type { CloudMachines } from './machines.ts';

/** File name of the socket inside the data directory. */
export const CLOUD_SOCKET = 'cloud.sock';

export const INSTANCE_VERBS = ['terminate', 'stop', 'start', 'vanish'] as const;
export type InstanceVerb = (typeof INSTANCE_VERBS)[number];

export type CloudCommand =
  | { readonly verb: 'list' }
  /** Names of machines or ids of instances; globs. */
  | { readonly verb: InstanceVerb; readonly names: readonly string[] }
  /** Null ends the trouble. */
  | { readonly verb: 'error'; readonly code: string | null };

export interface ListedInstance {
  /** The name of the machine; empty for an instance that is none. */
  readonly name: string;
  readonly instanceId: string;
  readonly zone: string;
  /** `unknown`: EC2 does not know it any more. */
  readonly state: InstanceState | 'unknown';
  readonly launchedAtMs: number | undefined;
}

export type CloudReply =
  | {
      readonly kind: 'listed';
      readonly endpoint?: string;
      readonly trouble: string | null;
      readonly instances: readonly ListedInstance[];
    }
  | {
      readonly kind: 'done';
      readonly instances: readonly (ListedInstance & { readonly order: 'done' | 'unknown' | 'incorrectState' })[];
    }
  | { readonly kind: 'errorSet'; readonly code: string | null }
  | { readonly kind: 'unknown'; readonly names: readonly string[] }
  | { readonly kind: 'malformed'; readonly why: string };

export const serveCloudControl = (path: string, cloud: DemoCloud, machines: CloudMachines): Promise<Control> =>
  serveControl(path, (command) => obey(command, cloud, machines));

export const sendCloudCommand = (path: string, command: CloudCommand): Promise<ControlOutcome<CloudReply>> =>
  sendControl<CloudReply>(path, command);

function obey(value: unknown, cloud: DemoCloud, machines: CloudMachines): CloudReply {
  const command = parseCommand(value);
  if (command === undefined) {
    return { kind: 'malformed', why: 'a command is {"verb": "list|terminate|stop|start|vanish|error", …}' };
  }
  const { world } = cloud;
  const ids = new Map(machines.instanceIds);
  const named = new Set(ids.values());
  for (const { instanceId } of world.instances(world.nowMs))
    if (!named.has(instanceId)) ids.set(instanceId, instanceId);
  const list = (name: string): ListedInstance => {
    const instanceId = ids.get(name)!;
    const seen = world.instance(instanceId, world.nowMs);
    return {
      name: name === instanceId ? '' : name,
      instanceId,
      zone: seen?.zone ?? '',
      state: seen?.state ?? 'unknown',
      launchedAtMs: seen?.launchedAtMs,
    };
  };
  switch (command.verb) {
    case 'list':
      return {
        kind: 'listed',
        trouble: cloud.trouble,
        instances: [...ids.keys()].map(list),
        ...defined({ endpoint: cloud.endpoint }),
      };
    case 'error':
      cloud.fail(command.code);
      return { kind: 'errorSet', code: command.code };
    default: {
      const { selected, unmatched } = selectNames(command.names, [...ids.keys(), ...named]);
      if (unmatched.length > 0) return { kind: 'unknown', names: unmatched };
      const byId = new Map([...ids].map(([name, instanceId]) => [instanceId, name]));
      const chosen = [...new Set(selected.map((name) => (ids.has(name) ? name : byId.get(name)!)))];
      const instances = chosen.map((name) => {
        const order = world[command.verb](ids.get(name)!);
        if (command.verb === 'vanish' && order === 'done') machines.vanished(ids.get(name)!);
        return { ...list(name), order };
      });
      cloud.changed();
      return { kind: 'done', instances };
    }
  }
}

function parseCommand(value: unknown): CloudCommand | undefined {
  const { verb, names, code } = (value ?? {}) as { verb?: unknown; names?: unknown; code?: unknown };
  if (verb === 'list') return { verb };
  if (verb === 'error') return typeof code === 'string' || code === null ? { verb, code } : undefined;
  const known = INSTANCE_VERBS.find((one) => one === verb);
  if (known === undefined || !Array.isArray(names) || names.some((name) => typeof name !== 'string')) return undefined;
  return { verb: known, names };
}
