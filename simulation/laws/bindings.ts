/**
 * L13: the scheduler binds a pod at most once, to a node that exists, is Ready and not cordoned, unless the pod
 * tolerates that. With that binding the requests on the node are within what it offers, if the pod requests any. No two
 * pods that keep away from each other share a zone.
 */
import { ZONE_LABEL } from '../../shared/fleet/nodes/node-digest.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import { objectPartition } from '../../shared/store/layout.ts';
import type { Mark } from '../coverage.ts';
import type { TimedChange } from '../recent-changes.ts';
import type { Law, LawContext } from './law.ts';
import { storedObject } from './stored-object.ts';
import type { Writer } from './truth.ts';

/** Name of the function. */
const SCHEDULER = 'scheduler';
const ALONE = 'alone';

export interface BindingsLaw extends Law {
  /** What one step wrote. */
  learn(changes: readonly TimedChange[], by: Writer): void;
}

export const bindingsFit = (context: LawContext, hit: (mark: Mark) => void): BindingsLaw =>
  new BindingsFit(context, hit);

const millicores = (text: string | undefined): number => {
  const parsed = parseQuantity(text ?? '0');
  return parsed.kind === 'parsed' ? Number(parsed.quantity.nanos / 1_000_000n) : 0;
};

const nodeNameOf = (pod: KubePod | undefined): string => pod?.spec?.nodeName ?? '';
const counts = (pod: KubePod): boolean => !['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');

const UNSCHEDULABLE = 'node.kubernetes.io/unschedulable';

/** Such a pod may be bound to a node that is not Ready, or cordoned. `taint`: of a pod that tolerates this one. */
const tolerates = (pod: KubePod, taint = ''): boolean =>
  (pod.spec?.tolerations ?? []).some(
    ({ key = '', operator, effect = 'NoSchedule' }) =>
      (key === '' || key === taint) && operator === 'Exists' && effect === 'NoSchedule',
  );

class BindingsFit implements BindingsLaw {
  readonly name = 'L13';
  readonly #context: LawContext;
  readonly #hit: (mark: Mark) => void;
  readonly #nodes = new Map<string, KubeNode>();
  readonly #pods = new Map<string, KubePod>();

  constructor(context: LawContext, hit: (mark: Mark) => void) {
    this.#context = context;
    this.#hit = hit;
  }

  learn(changes: readonly TimedChange[], by: Writer): void {
    const bound: string[] = [];
    for (const { key, newImage } of changes) {
      if (key.pk.startsWith(objectPartition('nodes'))) {
        if (newImage === undefined) this.#nodes.delete(key.sk);
        else this.#nodes.set(key.sk, storedObject(newImage) as KubeNode);
      } else if (key.pk.startsWith(objectPartition('pods'))) {
        const before = this.#pods.get(key.sk);
        if (newImage === undefined) {
          this.#pods.delete(key.sk);
          continue;
        }
        const pod = storedObject(newImage) as KubePod;
        this.#pods.set(key.sk, pod);
        const isSame = before?.metadata.uid === pod.metadata.uid;
        if (isSame && nodeNameOf(before) !== '' && nodeNameOf(before) !== nodeNameOf(pod)) {
          this.#fail([key.sk], `${key.sk} was bound to ${nodeNameOf(before)} and then to ${nodeNameOf(pod)}`);
        }
        if (by.name === SCHEDULER && isSame && nodeNameOf(before) === '' && nodeNameOf(pod) !== '') bound.push(key.sk);
      }
    }
    for (const key of bound) this.#check(key);
  }

  #check(key: string): void {
    this.#hit('pod:bound');
    const pod = this.#pods.get(key)!;
    const name = nodeNameOf(pod);
    const node = this.#nodes.get(name);
    if (node === undefined) {
      this.#fail([key, name], `${key} was bound to ${name}, which does not exist`);
      return;
    }
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    if (ready !== 'True' && !tolerates(pod))
      this.#fail([key, name], `${key} was bound to ${name}, with Ready=${ready}`);
    if (node.spec?.unschedulable === true && !tolerates(pod, UNSCHEDULABLE)) {
      this.#fail([key, name], `${key} was bound to ${name}, which is cordoned`);
    }
    if (pod.metadata.deletionTimestamp !== undefined) this.#fail([key], `${key} was bound after its deletion`);
    const here = [...this.#pods.values()].filter((other) => nodeNameOf(other) === name && counts(other));
    const used = here.reduce((sum, each) => sum + requestedCpu(each), 0);
    const { cpu, pods } = node.status?.allocatable ?? {};
    // A pod without a request fits a node that offers less than before.
    const isTooMuch = requestedCpu(pod) > 0 && used > millicores(cpu);
    if (isTooMuch || here.length > Number(pods ?? 0)) {
      this.#fail([key, name], `${name} has ${used}m of ${cpu} and ${here.length} pods of ${pods} with ${key}`);
    }
    this.#checkZone(key, pod, node);
  }

  #checkZone(key: string, pod: KubePod, node: KubeNode): void {
    const group = pod.metadata.labels?.[ALONE];
    const zone = node.metadata.labels?.[ZONE_LABEL];
    if (group === undefined || zone === undefined) return;
    for (const [other, theirs] of this.#pods) {
      if (other === key || theirs.metadata.labels?.[ALONE] !== group || !counts(theirs)) continue;
      const theirZone = this.#nodes.get(nodeNameOf(theirs))?.metadata.labels?.[ZONE_LABEL];
      if (theirZone === zone)
        this.#fail([key, other], `${key} and ${other} keep away from each other, both in ${zone}`);
    }
  }

  #fail(subjects: readonly string[], message: string): void {
    this.#context.fail({ law: 'L13', subjects, message });
  }
}

const requestedCpu = (pod: KubePod): number =>
  (pod.spec?.containers ?? []).reduce((sum, { resources }) => sum + millicores(resources?.requests?.['cpu']), 0);
