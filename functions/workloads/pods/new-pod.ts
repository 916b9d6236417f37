/**
 * A pod as a controller creates it: with the admission, defaults and validation of a POST. Sources:
 * pkg/controller/controller_utils.go (GetPodFromTemplate), plugin/pkg/admission (NamespaceLifecycle,
 * LimitRanger, ServiceAccount, Priority, RuntimeClass).
 */

import type { Creation } from '../../../shared/admission/created-object.ts';
import { defined } from '../../../shared/defined.ts';
import { DEFAULT_ACCOUNT } from '../../../shared/kinds/namespace-contents.ts';
import { preparePod } from '../../../shared/kinds/pods/defaults.ts';
import { limitViolation } from '../../../shared/kinds/pods/limit-range.ts';
import { accountNameOf, accountRefusal } from '../../../shared/kinds/pods/pod-account.ts';
import { defaultPriorityClass, priorityClassNameOf, resolvePriority } from '../../../shared/kinds/pods/pod-priority.ts';
import { runtimeClassNameOf, runtimeClassRefusal } from '../../../shared/kinds/pods/runtime-class.ts';
import { validatePod } from '../../../shared/kinds/pods/validate.ts';
import { systemPriorityClasses } from '../../../shared/kinds/priorityclasses/defaults.ts';
import type {
  KubeObject,
  KubeRuntimeClass,
  KubeServiceAccount,
  ObjectRef,
  OwnerReference,
} from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import type { PodTemplateSpec } from '../workload-types.ts';
import { invalidObject, LOST, lostByAdmission, type PodCreation } from './created-objects.ts';
import { prefixOf } from './generated-name.rule.ts';

/** Priority classes that are searched for the default one, at most. */
const CLASSES_MAX = 500;

type Dependencies = Pick<WorkloadDependencies, 'objects' | 'policy' | 'namespacePolicies'>;

const forbidden = (name: string, why: string) =>
  ({ kind: 'refused', message: `pods "${name}" is forbidden: ${why}` }) as const;

/**
 * How pods of one owner are made: what admission reads is read once. `own`: the template of one pod, with the priority
 * of the owner's.
 */
export async function podMaker(
  { objects, policy, namespacePolicies }: Dependencies,
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
  const accountName = accountNameOf(body) ?? DEFAULT_ACCOUNT;
  const accountRef = { resource: 'serviceaccounts', namespace: owner.namespace, name: accountName };
  const account = (await objects.get(accountRef)) ?? missingAccount(accountRef);
  const accountMissing = accountRefusal(owner.namespace, accountName, account);
  const priority = resolvePriority(body, await priorityClassesFor(objects, body));
  if (priority.kind === 'refused') return () => ({ kind: 'refused', message: priority.why });
  const className = runtimeClassNameOf(body);
  const runtimeClass: KubeRuntimeClass | undefined =
    className === '' ? undefined : await objects.get({ resource: 'runtimeclasses', namespace: '', name: className });
  const limitRanges = await namespacePolicies.limitRanges(owner.namespace);
  const refusal = runtimeClassRefusal(body, runtimeClass);
  const context = {
    nowMs,
    defaultTolerationSeconds: policy.podEvictionTimeoutSeconds,
    priority: priority.priority,
    limitRanges,
    ...defined({ account, runtimeClass }),
  };
  const prefix = owner.reference.kind === 'StatefulSet' ? () => `${owner.reference.name}-` : prefixOf;
  return (name, uid, own = template) => {
    const { annotations, finalizers } = own.metadata ?? {};
    const given: KubeObject = {
      metadata: {
        name,
        generateName: prefix(name),
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
    return prepared(given);
  };

  function prepared(given: KubeObject): Creation {
    const pod = preparePod.prepareForCreate(given, context);
    const why = accountMissing ?? refusal ?? limitViolation('pods', pod, limitRanges);
    if (why !== undefined) return forbidden(pod.metadata.name ?? '', why);
    const [cause] = validatePod(pod, undefined, '');
    if (cause !== undefined) return invalidObject('Pod', pod, cause.field, cause.message);
    return {
      kind: 'made',
      object: pod,
      given,
      complete(changed) {
        const lost = lostByAdmission(pod, changed);
        return lost === undefined ? prepared(changed) : invalidObject('Pod', pod, lost, LOST);
      },
    };
  }
}

/** Every namespace has the account `default`: the API creates it when it is read. */
const missingAccount = ({ namespace, name }: ObjectRef): KubeServiceAccount | undefined =>
  name === DEFAULT_ACCOUNT ? { metadata: { namespace, name } } : undefined;

async function priorityClassesFor(objects: Dependencies['objects'], pod: KubeObject) {
  const name = priorityClassNameOf(pod);
  const system = systemPriorityClasses().find((each) => each.metadata.name === name);
  if (system !== undefined) return { named: system };
  if (name !== '') return { named: await objects.get({ resource: 'priorityclasses', namespace: '', name }) };
  const { objects: classes } = await objects.list({ resource: 'priorityclasses', limit: CLASSES_MAX });
  return { globalDefault: defaultPriorityClass(classes) };
}
