/**
 * A pod as a controller creates it: with the admission, defaults and validation of a POST. Sources:
 * pkg/controller/controller_utils.go (GetPodFromTemplate), plugin/pkg/admission (NamespaceLifecycle, Priority).
 */
import { systemPriorityClasses } from '../../api/kinds/priorityclasses.ts';
import { pods } from '../../api/kinds/registry.ts';
import { defaultPriorityClass, priorityClassNameOf, resolvePriority } from '../../kube/pods/pod-priority.ts';
import { formatTime } from '../../kube/time.ts';
import type { KubeObject, KubePod, OwnerReference } from '../../kube/types.ts';
import type { PodTemplateSpec } from '../../kube/workload-types.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';

/** Priority classes that are searched for the default one, at most. */
const CLASSES_MAX = 500;

export type PodCreation =
  | { readonly kind: 'pod'; readonly pod: KubePod }
  /** The API would refuse it. */
  | { readonly kind: 'refused'; readonly message: string }
  /** Its namespace is being deleted: no failure of the owner. */
  | { readonly kind: 'namespaceTerminating' };

type Dependencies = Pick<ControllerDependencies, 'objects' | 'policy'>;

/**
 * How pods of one owner are made: what admission reads is read once. `own`: the template of one pod, with the priority
 * of the owner's.
 */
export async function podMaker(
  { objects, policy }: Dependencies,
  owner: {
    readonly namespace: string;
    readonly reference: OwnerReference;
    readonly template: PodTemplateSpec | undefined;
  },
  nowMs: number,
): Promise<(name: string, uid: string, own?: PodTemplateSpec) => PodCreation> {
  const { template = {} } = owner;
  const namespace = await objects.get({ resource: 'namespaces', namespace: '', name: owner.namespace });
  if (namespace?.metadata.deletionTimestamp !== undefined) return () => ({ kind: 'namespaceTerminating' });
  const labels = template.metadata?.labels ?? {};
  if (Object.keys(labels).length === 0) {
    return () => ({ kind: 'refused', message: 'unable to create pods, no labels' });
  }
  const body = { metadata: {}, spec: template.spec ?? {} } as KubeObject;
  const priority = resolvePriority(body, await priorityClassesFor(objects, body));
  if (priority.kind === 'refused') return () => ({ kind: 'refused', message: priority.why });
  return (name, uid, own = template) => {
    const { annotations, finalizers } = own.metadata ?? {};
    const given: KubeObject = {
      metadata: {
        name,
        namespace: owner.namespace,
        uid,
        creationTimestamp: formatTime(nowMs),
        labels: own.metadata?.labels ?? {},
        ...(annotations === undefined ? {} : { annotations }),
        ...(finalizers === undefined ? {} : { finalizers }),
        ownerReferences: [owner.reference],
      },
      spec: own.spec ?? {},
    };
    const pod = pods.prepareForCreate(given, {
      nowMs,
      defaultTolerationSeconds: policy.podEvictionTimeoutSeconds,
      priority: priority.priority,
    });
    const [cause] = pods.validate(pod, { operation: 'create', subresource: '' });
    return cause === undefined
      ? { kind: 'pod', pod }
      : { kind: 'refused', message: `Pod "${name}" is invalid: ${cause.field}: ${cause.message}` };
  };
}

async function priorityClassesFor(objects: Dependencies['objects'], pod: KubeObject) {
  const name = priorityClassNameOf(pod);
  const system = systemPriorityClasses().find((each) => each.metadata.name === name);
  if (system !== undefined) return { named: system };
  if (name !== '') return { named: await objects.get({ resource: 'priorityclasses', namespace: '', name }) };
  const { objects: classes } = await objects.list({ resource: 'priorityclasses', limit: CLASSES_MAX });
  return { globalDefault: defaultPriorityClass(classes) };
}
