/**
 * Addresses of the pods of a simulated machine. A pod keeps its address until it ends, as with a kubelet, and no two
 * pods that run have the same.
 */
import { hasEnded } from '../../agent/rules/pod-status.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { recordOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import type { MachineIdentity } from './names.ts';
import { addressOf } from './node-object.ts';

/** Addresses per machine: more than the 110 pods that it has room for. */
const BLOCK = 128;
const ZONES = 32;

/** The first of the addresses of a machine, all in 10.128.0.0/9. 2,048 machines per zone before two share them. */
function blockOf({ zoneIndex, index }: MachineIdentity): readonly [second: number, third: number, fourth: number] {
  const block = index * ZONES + (zoneIndex % ZONES);
  return [128 + ((block >> 9) & 127), (block >> 1) & 255, (block & 1) * BLOCK];
}

/**
 * @param pods all pods that are bound to the machine
 * @returns addresses by the uid of the pod; none for a pod that succeeded or failed. A pod in the network of its
 *   machine has the machine's address.
 */
export function podAddresses(machine: MachineIdentity, pods: readonly KubeObject[]): ReadonlyMap<string, string> {
  const addresses = new Map<string, string>();
  const waiting: string[] = [];
  for (const pod of pods) {
    const { uid = '' } = pod.metadata;
    if (hasEnded(pod)) continue;
    const given = textOf(recordOf(pod.status)['podIP']);
    if (recordOf(pod.spec)['hostNetwork'] === true) addresses.set(uid, addressOf(machine));
    else if (given !== '') addresses.set(uid, given);
    else waiting.push(uid);
  }
  const used = new Set(addresses.values());
  const [second, third, first] = blockOf(machine);
  // 0 is the network. A machine with more pods than addresses uses the last one for the others.
  let host = 1;
  for (const uid of waiting) {
    const at = (): string => `10.${second}.${third}.${first + host}`;
    while (host < BLOCK - 1 && used.has(at())) host += 1;
    addresses.set(uid, at());
    used.add(at());
  }
  return addresses;
}
