/** The stored objects that the laws of workloads need, kept from the changes: owners, their objects, pods and Nodes. */

import type { KubeDeployment, KubeReplicaSet, KubeStatefulSet } from '../../functions/workloads/workload-types.ts';
import type {
  KubeDaemonSet,
  KubeJob,
  KubeNode,
  KubeObject,
  KubePod,
  OwnerReference,
} from '../../shared/kinds/types.ts';
import type { TimedChange } from '../recent-changes.ts';
import { storedObject } from './stored-object.ts';

interface Kinds {
  readonly deployments: KubeDeployment;
  readonly replicasets: KubeReplicaSet;
  readonly daemonsets: KubeDaemonSet;
  readonly statefulsets: KubeStatefulSet;
  readonly jobs: KubeJob;
  readonly controllerrevisions: KubeObject;
  readonly configmaps: KubeObject;
  readonly pods: KubePod;
  readonly nodes: KubeNode;
}
export type Resource = keyof Kinds;

const RESOURCES: ReadonlySet<string> = new Set<Resource>([
  'deployments',
  'replicasets',
  'daemonsets',
  'statefulsets',
  'jobs',
  'controllerrevisions',
  'configmaps',
  'pods',
  'nodes',
]);

/** One object before and after a step. */
export interface Changed<T extends KubeObject = KubeObject> {
  readonly resource: Resource;
  /** `namespace/name`; the name of a Node. */
  readonly key: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}

export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);
export const uidOf = ({ metadata }: KubeObject): string => metadata.uid ?? '';
export const isDeleting = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const hasEnded = ({ status }: KubePod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';
export const isActive = (pod: KubePod): boolean => !isDeleting(pod) && !hasEnded(pod);
export const isReady = ({ status }: KubePod): boolean =>
  (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True');

/** It existed before the step, and is deleted or being deleted after it. */
export const wasDeleted = ({ before, after }: Changed): boolean =>
  before !== undefined &&
  !isDeleting(before) &&
  (after === undefined || uidOf(after) !== uidOf(before) || isDeleting(after));

export const wasCreated = ({ before, after }: Changed): boolean =>
  after !== undefined && (before === undefined || uidOf(before) !== uidOf(after));

export interface WorkloadWorld {
  nodes(): ReadonlyMap<string, KubeNode>;
  has(resource: Resource, key: string): boolean;
  all<R extends Resource>(resource: R): Iterable<Kinds[R]>;
  /** The stored object with this uid. */
  withUid(uid: string): { readonly resource: Resource; readonly object: KubeObject } | undefined;
  /** Objects of a resource that this owner controls. */
  controlledBy<R extends Resource>(uid: string, resource: R): readonly Kinds[R][];
  /** Applies what a step wrote. */
  apply(changes: readonly TimedChange[]): readonly Changed[];
}

export function createWorkloadWorld(): WorkloadWorld {
  const objects = new Map<Resource, Map<string, KubeObject>>(
    [...RESOURCES].map((each) => [each as Resource, new Map()]),
  );
  const byUid = new Map<string, { readonly resource: Resource; readonly object: KubeObject }>();
  /** By uid of the controller and resource. */
  const controlled = new Map<string, Map<string, KubeObject>>();

  function forget(resource: Resource, key: string, object: KubeObject): void {
    byUid.delete(uidOf(object));
    controlled.get(`${controllerOf(object)?.uid} ${resource}`)?.delete(key);
  }

  function remember(resource: Resource, key: string, object: KubeObject): void {
    byUid.set(uidOf(object), { resource, object });
    const controller = controllerOf(object)?.uid;
    if (controller === undefined) return;
    const id = `${controller} ${resource}`;
    const group = controlled.get(id) ?? new Map<string, KubeObject>();
    controlled.set(id, group.set(key, object));
  }

  return {
    nodes: () => objects.get('nodes') as ReadonlyMap<string, KubeNode>,
    has: (resource, key) => objects.get(resource)!.has(key),
    all: (resource) => objects.get(resource)!.values() as Iterable<never>,
    withUid: (uid) => byUid.get(uid),
    controlledBy: (uid, resource) => [...(controlled.get(`${uid} ${resource}`)?.values() ?? [])] as never[],
    apply(changes) {
      const changed = new Map<string, Changed>();
      for (const { key, newImage } of changes) {
        const [table, name = ''] = key.pk.split('#');
        if (table !== 'o' || !RESOURCES.has(name)) continue;
        const resource = name as Resource;
        const stored = objects.get(resource)!;
        const before = stored.get(key.sk);
        const after = newImage === undefined ? undefined : storedObject(newImage);
        if (before !== undefined) forget(resource, key.sk, before);
        if (after === undefined) stored.delete(key.sk);
        else {
          stored.set(key.sk, after);
          remember(resource, key.sk, after);
        }
        const id = `${resource} ${key.sk}`;
        const first = changed.get(id);
        changed.set(id, { resource, key: key.sk, before: first === undefined ? before : first.before, after });
      }
      return [...changed.values()];
    },
  };
}
