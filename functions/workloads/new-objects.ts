/**
 * What a POST asks about a new object of a controller: policies and webhooks, and the quotas of its namespace.
 *
 * Admission of objects that controllers create, by policies and webhooks of the cluster, before the transaction that
 * creates them: pods, and what pods come from, which are ReplicaSets, Jobs, ControllerRevisions and claims.
 * Source: every controller of kube-controller-manager is a client of the API.
 *
 * A webhook may take seconds. A sync does not wait for it: the answer is kept in memory, and a later sync of the owner
 * uses it. Names follow from the owner, so a later sync asks about the same objects. Pods have other names under
 * another claim. Then, and after a restart, it asks again, as upstream asks for each attempt.
 *
 * A pod as a controller creates it: with the admission, defaults and validation of a POST. Sources:
 * pkg/controller/controller_utils.go (GetPodFromTemplate), plugin/pkg/admission (NamespaceLifecycle,
 * LimitRanger, ServiceAccount, Priority, RuntimeClass).
 */
import type { AdmissionWait, Creation, Creator, MadeObject } from '../../shared/admission/created-object.ts';
import { defined } from '../../shared/defined.ts';
import { preparePod } from '../../shared/kinds/pods/defaults.ts';
import { limitViolation } from '../../shared/kinds/pods/limit-range.ts';
import {
  accountNameOf,
  accountRefusal,
  defaultPriorityClass,
  priorityClassNameOf,
  resolvePriority,
  runtimeClassNameOf,
  runtimeClassRefusal,
} from '../../shared/kinds/pods/pod-admission.ts';
import { validatePod } from '../../shared/kinds/pods/validate.ts';
import { systemPriorityClasses } from '../../shared/kinds/priorityclasses/defaults.ts';
import { type CountedResource, checkQuota } from '../../shared/kinds/quotas/quota.ts';
import { DEFAULT_ACCOUNT } from '../../shared/kinds/stored-resource.ts';
import type {
  KubeObject,
  KubeResourceQuota,
  KubeRuntimeClass,
  KubeServiceAccount,
  ObjectRef,
  OwnerReference,
} from '../../shared/kinds/types.ts';
import { jsonEqual } from '../../shared/kubernetes/json.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import type { ObjectWrite } from '../../shared/store/object-store.ts';
import type { WorkloadDependencies } from './dependencies.ts';
import { refOfObject } from './owner.ts';
import { prefixOf } from './template.rule.ts';
import type { PodTemplateSpec } from './workload-types.ts';

/** Until a refused creation is tried again: what refused it, such as a quota, may permit it later. Milliseconds. */
export const REFUSED_RETRY_MS = 60_000;

export interface NewObject extends CountedResource {
  readonly creator: Creator;
  /** Before defaults: some of these follow from the uid. */
  readonly given: KubeObject;
  /** With the defaults of a POST. */
  readonly prepare: (changed: KubeObject) => KubeObject;
  /** What its owner compares, by fields: admission may not change it. */
  readonly compared?: (object: KubeObject) => Readonly<Record<string, unknown>>;
}

/** Whether one object that is no pod may be created. `quotas`: to write in the same commit. */
export type Permission =
  | { readonly kind: 'permitted'; readonly object: KubeObject; readonly quotas: readonly ObjectWrite[] }
  | { readonly kind: 'refused'; readonly message: string; readonly retryMs: number }
  | AdmissionWait;

export async function permitted(
  dependencies: Pick<WorkloadDependencies, 'admitObjects' | 'namespacePolicies' | 'clock'>,
  { creator, group, resource, ...of }: NewObject,
): Promise<Permission> {
  const prepared = of.prepare(of.given);
  const made: MadeObject = {
    kind: 'made',
    object: prepared,
    given: of.given,
    complete(changed) {
      const object = of.prepare(changed);
      const lost = lostByAdmission(prepared, object) ?? lostField(of.compared, prepared, object);
      if (lost === undefined) return { ...made, object };
      const { kind = '' } = prepared;
      return invalidObject(group === '' ? kind : `${kind}.${group}`, prepared, lost, LOST);
    },
  };
  const admission = await dependencies.admitObjects(creator, { group, resource }, [made]);
  if (admission.kind === 'waiting') return admission;
  const [outcome = made] = admission.objects;
  const retryMs = REFUSED_RETRY_MS;
  if (outcome.kind === 'refused') return { retryMs, ...outcome };
  const { object } = outcome;
  const { namespace = '' } = object.metadata;
  const charging = { group, resource, namespace, nowMs: dependencies.clock.nowMs() };
  const { quotas, refusal } = await chargedObjects(dependencies, charging, [object]);
  return refusal === undefined ? { kind: 'permitted', object, quotas } : { kind: 'refused', message: refusal, retryMs };
}

function lostField(compared: NewObject['compared'], object: KubeObject, changed: KubeObject): string | undefined {
  const fields = compared?.(changed) ?? {};
  return Object.entries(compared?.(object) ?? {}).find(([field, value]) => !jsonEqual(value, fields[field]))?.[0];
}

export interface ChargedObjects<Created extends KubeObject> {
  /** The first of the objects: all that the quotas permit. */
  readonly permitted: readonly Created[];
  /** Quotas to write in the commit that creates these objects. */
  readonly quotas: readonly ObjectWrite[];
  /** Why the next object is not permitted. Absent: all are. */
  readonly refusal?: string;
}

/**
 * The new objects of one resource that the quotas of their namespace permit, and the quotas with their use. A commit
 * with these is refused if another creation was charged meanwhile, and the caller decides again.
 */
export async function chargedObjects<Created extends KubeObject>(
  { namespacePolicies }: Pick<WorkloadDependencies, 'namespacePolicies'>,
  of: CountedResource & { readonly namespace: string; readonly nowMs: number },
  objects: readonly Created[],
): Promise<ChargedObjects<Created>> {
  if (objects.length === 0) return { permitted: [], quotas: [] };
  const { group, resource, nowMs } = of;
  const stored = await namespacePolicies.quotas(of.namespace);
  let current: readonly KubeResourceQuota[] = stored;
  const permitted: Created[] = [];
  let refusal: string | undefined;
  for (const object of objects) {
    const checks = current.map((quota) => checkQuota(quota, { group, resource, object, nowMs }));
    const refused = checks.flatMap((check) => (check.kind === 'refused' ? [check.why] : []));
    if (refused[0] !== undefined) {
      const kind = group === '' ? resource : `${resource}.${group}`;
      refusal = `${kind} "${object.metadata.name ?? ''}" is forbidden: ${refused[0]}`;
      break;
    }
    current = current.map((quota, index) => {
      const check = checks[index];
      return check?.kind === 'charged' ? check.quota : quota;
    });
    permitted.push(object);
  }
  const quotas = stored.flatMap((previous, index): ObjectWrite[] => {
    const object = current[index];
    return object === undefined || object === previous
      ? []
      : [{ kind: 'update', ref: refOfObject('resourcequotas', previous), object, previous }];
  });
  return { permitted, quotas, ...defined({ refusal }) };
}

/** In a namespace that is being deleted none is created: no failure of the owner. */
export type PodCreation = Creation | { readonly kind: 'namespaceTerminating' };

/**
 * What admission changed in an object although its owner needs it: the owner would not find the object, or count it
 * twice, and create another one without end. Name, namespace and uid are kept by admission. undefined: nothing.
 */
export function lostByAdmission({ metadata: made }: KubeObject, { metadata: changed }: KubeObject): string | undefined {
  const label = Object.entries(made.labels ?? {}).find(([key, value]) => changed.labels?.[key] !== value);
  if (label !== undefined) return `metadata.labels[${label[0]}]`;
  const finalizer = (made.finalizers ?? []).find((each) => changed.finalizers?.includes(each) !== true);
  if (finalizer !== undefined) return `metadata.finalizers[${finalizer}]`;
  return jsonEqual(made.ownerReferences ?? [], changed.ownerReferences ?? []) ? undefined : 'metadata.ownerReferences';
}

/** As the API refuses an invalid object. */
const invalidObject = (kind: string, { metadata }: KubeObject, field: string | undefined, why: string) =>
  ({ kind: 'refused', message: `${kind} "${metadata.name ?? ''}" is invalid: ${field}: ${why}` }) as const;

const LOST = 'its owner needs it, and admission changed it';

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
