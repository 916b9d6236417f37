/**
 * How many pods a budget expects: what the controllers of its pods want. Source:
 * pkg/controller/disruption/disruption.go (getExpectedPodCount, getExpectedScale).
 */
import { controllerOf } from '../../kubernetes/normal-form.ts';
import type { KubeObject, KubePod, KubePodDisruptionBudget, ObjectRef, OwnerReference } from '../types.ts';
import { coveredPods, type ExpectedPods } from './budget-status.ts';

type Get = (ref: ObjectRef) => Promise<KubeObject | undefined>;

/** Kinds with the subresource scale. */
const SCALABLE: Readonly<Record<string, string>> = {
  ReplicaSet: 'replicasets',
  Deployment: 'deployments',
  StatefulSet: 'statefulsets',
  ReplicationController: 'replicationcontrollers',
};

/** Undefined: the existing pods count, because minAvailable is a number. Reads each controller once. */
export async function expectedPodsOf(
  budget: KubePodDisruptionBudget,
  pods: readonly KubePod[],
  get: Get,
): Promise<ExpectedPods | undefined> {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  if (maxUnavailable === undefined && typeof minAvailable !== 'string') return undefined;
  const wanted = new Map<string, number>();
  const seen = new Set<string>();
  let unmanaged = 0;
  for (const pod of coveredPods(budget, pods)) {
    const controller = controllerOf(pod);
    if (controller === undefined) unmanaged += 1;
    if (controller === undefined || seen.has(controller.uid)) continue;
    seen.add(controller.uid);
    const { namespace = '', name = '' } = pod.metadata;
    const scale = await scaleOf(controller, namespace, get);
    if (scale.kind === 'failed') return scale;
    if (scale.kind === 'absent') return { kind: 'failed', message: `found no controllers for pod "${name}"` };
    wanted.set(scale.uid, scale.replicas);
  }
  const replicas = [...wanted.values()].reduce((sum, each) => sum + each, 0);
  return { kind: 'counted', pods: replicas + unmanaged };
}

type Scale =
  | { readonly kind: 'scale'; readonly uid: string; readonly replicas: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly message: string };

/** The scale of a controller; for a ReplicaSet of a Deployment that of the Deployment. */
async function scaleOf({ apiVersion, kind, name, uid }: OwnerReference, namespace: string, get: Get): Promise<Scale> {
  const resource = SCALABLE[kind];
  if (resource === undefined) {
    const group = apiVersion.includes('/') ? `.${apiVersion.slice(0, apiVersion.indexOf('/'))}` : '';
    const plural = `${kind.toLowerCase()}s${group}`;
    return { kind: 'failed', message: `${plural} does not implement the scale subresource` };
  }
  const object = await get({ resource, namespace, name });
  if (object === undefined || object.metadata.uid !== uid) return { kind: 'absent' };
  const controller = controllerOf(object);
  if (kind === 'ReplicaSet' && controller?.kind === 'Deployment') return scaleOf(controller, namespace, get);
  const replicas = object.spec?.['replicas'];
  return { kind: 'scale', uid, replicas: typeof replicas === 'number' ? replicas : 1 };
}
