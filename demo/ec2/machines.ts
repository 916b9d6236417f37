/** Simulated machines that are instances of the local EC2: power follows the state of the instance. */
import { createHash } from 'node:crypto';
import type { MachineIdentity } from '../fleet/names.ts';
import { addressOf } from '../fleet/node-object.ts';
import type { DemoCloud } from './demo-cloud.ts';

/** The part of a fleet that power touches. */
export interface PoweredFleet {
  silence(names: readonly string[]): unknown;
  beat(names: readonly string[]): unknown;
}

export interface CloudMachines {
  /** Instance id by machine name. */
  readonly instanceIds: ReadonlyMap<string, string>;
  readonly providerIds: ReadonlyMap<string, string>;
  /** Machines with an instance that an earlier start left stopped. */
  readonly poweredOff: ReadonlySet<string>;
  /** From now on a machine falls silent when its instance stops, ends or vanishes, and beats when it runs. */
  power(fleet: PoweredFleet): void;
  /** An instance vanished: EC2 reports no change of state. */
  vanished(instanceId: string): void;
}

/** Old enough that EC2 not knowing one counts at once. */
const AGE_MS = 600_000;
const INSTANCE_TYPE = 'm7g.large';

/** Creates an instance for each machine, always with the same id. The state from an earlier start stays. */
export function createInstances(
  cloud: DemoCloud,
  machines: readonly MachineIdentity[],
  { region, nowMs }: { readonly region: string; readonly nowMs: number },
): CloudMachines {
  const { world } = cloud;
  const instanceIds = new Map<string, string>();
  const providerIds = new Map<string, string>();
  const poweredOff = new Set<string>();
  const names = new Map<string, string>();
  for (const machine of machines) {
    const instanceId = instanceIdOf(machine.name);
    const zone = `${region}${String.fromCharCode('a'.charCodeAt(0) + machine.zoneIndex)}`;
    if (!world.has(instanceId)) {
      world.put({
        instanceId,
        zone,
        instanceType: INSTANCE_TYPE,
        launchedAtMs: nowMs - AGE_MS,
        addresses: [{ type: 'InternalIP', address: addressOf(machine) }],
        tags: { Name: machine.name },
      });
    }
    const state = world.instance(instanceId, nowMs)?.state;
    if (state !== 'running' && state !== 'pending') poweredOff.add(machine.name);
    instanceIds.set(machine.name, instanceId);
    providerIds.set(machine.name, `aws:///${zone}/${instanceId}`);
    names.set(instanceId, machine.name);
  }
  if (machines.length > 0) cloud.changed();
  let powered: PoweredFleet | undefined;
  return {
    instanceIds,
    providerIds,
    poweredOff,
    power(fleet) {
      powered = fleet;
      cloud.subscribe(({ instanceId, state }) => {
        const name = names.get(instanceId);
        if (name === undefined) return;
        if (state === 'running') fleet.beat([name]);
        else if (state !== 'pending') fleet.silence([name]);
      });
    },
    vanished(instanceId) {
      const name = names.get(instanceId);
      if (name !== undefined) powered?.silence([name]);
    },
  };
}

const instanceIdOf = (name: string): string => `i-${createHash('sha256').update(name).digest('hex').slice(0, 17)}`;
