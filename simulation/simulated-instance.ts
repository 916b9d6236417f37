/** The EC2 instance behind a simulated machine. */
import type { CloudInstance } from '../demo/ec2/cloud-world.ts';
import { regionOfZone } from '../shared/fleet/instances/provider-id.ts';
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import type { MachineSpec } from './scenario.ts';
import { hashOf } from './seeded-random.ts';

export const SIMULATED_REGION = 'us-east-1';
/** The zone of an instance when the zone of its machine is not in EC2. */
const OTHER_ZONE = 'us-east-1a';

type Named = Pick<MachineSpec, 'name' | 'labels'>;

const ec2ZoneOf = ({ labels }: Named): string => {
  const zone = labels[ZONE_LABEL];
  return zone !== undefined && regionOfZone(zone) === SIMULATED_REGION ? zone : OTHER_ZONE;
};

/** `i-<17 hex digits>`, always the same for a name. */
export function instanceIdOf({ name }: Pick<MachineSpec, 'name'>): string {
  let digits = '';
  for (let word = 0; word < 3; word += 1) {
    digits += hashOf(`${word}${name}`).toString(16).padStart(8, '0');
  }
  return `i-${digits.slice(0, 17)}`;
}

/** `aws:///<zone>/<instance id>` */
export const providerIdOf = (machine: Named): string => `aws:///${ec2ZoneOf(machine)}/${instanceIdOf(machine)}`;

export const instanceOf = (machine: Named, launchedAtMs: number): CloudInstance => ({
  instanceId: instanceIdOf(machine),
  zone: machine.labels[ZONE_LABEL] ?? OTHER_ZONE,
  instanceType: 'm5.large',
  launchedAtMs,
});
