/**
 * How many pods a budget expects: what the controllers of its pods want. Source:
 * pkg/controller/disruption/disruption.go (getExpectedPodCount, getExpectedScale).
 */
import { controllerOf } from '../../kubernetes/normal-form.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import type { DefinitionCatalog } from '../customresourcedefinitions/catalog.ts';
import type { KubePod, KubePodDisruptionBudget, OwnerReference } from '../types.ts';
import { coveredPods, type ExpectedPods } from './budget-status.ts';

/** Where the controllers of pods are read. */
export interface Controllers {
  readonly objects: Pick<ObjectStore, 'get'>;
  readonly definitions: DefinitionCatalog;
}

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
  controllers: Controllers,
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
    const scale = await scaleOf(controller, namespace, controllers);
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
async function scaleOf(
  { apiVersion, kind, name, uid }: OwnerReference,
  namespace: string,
  controllers: Controllers,
): Promise<Scale> {
  const { objects, definitions } = controllers;
  const [version, group = ''] = apiVersion.split('/').reverse();
  const isCustom = group.includes('.');
  const definition = isCustom
    ? (await definitions.all()).find(
        ({ spec, status }) => spec?.group === group && status?.acceptedNames?.kind === kind,
      )
    : undefined;
  const path = definition?.spec?.versions.find((each) => each.name === version)?.subresources?.scale?.specReplicasPath;
  const resource = isCustom ? path && definition?.metadata.name : SCALABLE[kind];
  if (resource === undefined) {
    const plural = `${kind.toLowerCase()}s${group === '' ? '' : `.${group}`}`;
    return { kind: 'failed', message: `${plural} does not implement the scale subresource` };
  }
  const object = await objects.get({ resource, namespace, name });
  if (object === undefined || object.metadata.uid !== uid) return { kind: 'absent' };
  const controller = controllerOf(object);
  if (kind === 'ReplicaSet' && controller?.kind === 'Deployment') return scaleOf(controller, namespace, controllers);
  if (path !== undefined) {
    const { valueOfScale } = await import('../custom-resources/json-path.ts');
    const replicas = valueOfScale(path, object);
    if (typeof replicas === 'number') return { kind: 'scale', uid, replicas };
    return { kind: 'failed', message: `the spec replicas field "${path}" does not exist` };
  }
  const replicas = object.spec?.['replicas'];
  return { kind: 'scale', uid, replicas: typeof replicas === 'number' ? replicas : 1 };
}
