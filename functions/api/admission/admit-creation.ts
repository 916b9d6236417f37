/**
 * Admission that reads other objects: the namespace of a new object and its LimitRanges, and the ServiceAccount, the
 * priority class and the RuntimeClass of a new pod. Kubernetes: "Admission Controllers", NamespaceLifecycle,
 * LimitRanger, ServiceAccount, Priority, RuntimeClass.
 */
import { defined } from '../../../shared/defined.ts';
import type { PrepareContext, ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { SYSTEM_NAMESPACES } from '../../../shared/kinds/namespaces/serve.ts';
import { defaultClass, wantsDefaultClass } from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { persistentvolumeclaims } from '../../../shared/kinds/persistentvolumes/serve.ts';
import { isLimited, limitViolation } from '../../../shared/kinds/pods/limit-range.ts';
import {
  accountNameOf,
  accountRefusal,
  defaultPriorityClass,
  mirrorPodRefusal,
  type PriorityClasses,
  priorityClassNameOf,
  resolvePriority,
  runtimeClassNameOf,
  runtimeClassRefusal,
} from '../../../shared/kinds/pods/pod-admission.ts';
import { isSystemPriorityClass, systemPriorityClasses } from '../../../shared/kinds/priorityclasses/defaults.ts';
import { namespaces, priorityclasses } from '../../../shared/kinds/registry.ts';
import { runtimeclasses } from '../../../shared/kinds/runtimeclasses/serve.ts';
import { serviceaccounts } from '../../../shared/kinds/serviceaccounts/serve.ts';
import { storageclasses } from '../../../shared/kinds/storageclasses/serve.ts';
import type {
  KubeObject,
  KubePod,
  KubePriorityClass,
  KubeRuntimeClass,
  KubeServiceAccount,
} from '../../../shared/kinds/types.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** Classes that are searched for the default one, at most. */
const CLASSES_MAX = 500;

export type AdmittedContext = Pick<
  PrepareContext,
  'account' | 'priority' | 'limitRanges' | 'runtimeClass' | 'defaultClassName'
>;

/** What admission read, for the defaults of the new object. @throws StatusError 403 or 404 when it is refused */
export async function admitCreation(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  object: KubeObject,
): Promise<AdmittedContext> {
  const { group, resource } = descriptor;
  const [limitRanges] = await Promise.all([
    isLimited(group, resource) ? dependencies.namespacePolicies.limitRanges(object.metadata.namespace ?? '') : [],
    descriptor.namespaced ? requireNamespace(dependencies, descriptor, object) : undefined,
  ]);
  if (descriptor === persistentvolumeclaims) {
    return { limitRanges, ...defined({ defaultClassName: await defaultClassFor(dependencies, object) }) };
  }
  if (group !== '' || resource !== 'pods') return { limitRanges };
  const [account, runtimeClass, classes] = await Promise.all([
    accountFor(dependencies, object),
    runtimeClassFor(dependencies, object),
    classesFor(dependencies, object),
  ]);
  const refuse = (why: string) => status.forbidden(descriptor, object.metadata.name ?? '', why);
  if (account.kind === 'refused') throw refuse(account.why);
  const refusal = runtimeClassRefusal(object, runtimeClass);
  if (refusal !== undefined) throw refuse(refusal);
  const outcome = resolvePriority(object, classes);
  if (outcome.kind === 'refused') throw refuse(outcome.why);
  return { priority: outcome.priority, limitRanges, ...defined({ account: account.account, runtimeClass }) };
}

/** Source: plugin/pkg/admission/storage/storageclass/setdefault/admission.go. A claim with a class reads nothing. */
async function defaultClassFor(dependencies: ApiDependencies, claim: KubeObject): Promise<string | undefined> {
  if (!wantsDefaultClass(claim)) return undefined;
  const { items } = await dependencies.storageOf(storageclasses).list({ namespace: '', limit: CLASSES_MAX });
  return defaultClass(items)?.metadata.name;
}

type AccountOutcome =
  /** `account` is absent for a mirror pod. */
  | { readonly kind: 'found'; readonly account?: KubeServiceAccount }
  | { readonly kind: 'refused'; readonly why: string };

/** The account `default` is created by this read if it is missing. */
async function accountFor(dependencies: ApiDependencies, pod: KubePod): Promise<AccountOutcome> {
  const name = accountNameOf(pod);
  const namespace = pod.metadata.namespace ?? '';
  if (name === undefined) return outcomeOf(mirrorPodRefusal(pod));
  const account: KubeServiceAccount | undefined = await dependencies.storageOf(serviceaccounts).get(namespace, name);
  return outcomeOf(accountRefusal(namespace, name, account), account);
}

const outcomeOf = (why: string | undefined, account?: KubeServiceAccount): AccountOutcome =>
  why === undefined ? { kind: 'found', ...defined({ account }) } : { kind: 'refused', why };

/** LimitRanges bound the prepared object, with its defaults. @throws StatusError 403 */
export function refuseOutsideLimits(
  descriptor: ResourceDescriptor,
  prepared: KubeObject,
  { limitRanges = [] }: AdmittedContext,
): void {
  const why = limitViolation(descriptor.resource, prepared, limitRanges);
  if (why !== undefined) throw status.forbidden(descriptor, prepared.metadata.name ?? '', why);
}

async function runtimeClassFor(dependencies: ApiDependencies, pod: KubePod): Promise<KubeRuntimeClass | undefined> {
  const name = runtimeClassNameOf(pod);
  return name === '' ? undefined : dependencies.storageOf(runtimeclasses).get('', name);
}

/** System namespaces always exist, so they are not read. */
async function requireNamespace(
  dependencies: ApiDependencies,
  descriptor: ResourceDescriptor,
  { metadata }: KubeObject,
): Promise<void> {
  const name = metadata.namespace ?? '';
  if ((SYSTEM_NAMESPACES as readonly string[]).includes(name)) return;
  const namespace = await dependencies.storageOf(namespaces).get('', name);
  if (namespace === undefined) throw status.notFound(namespaces, name);
  if (namespace.metadata.deletionTimestamp === undefined) return;
  throw status.forbidden(
    descriptor,
    metadata.name ?? '',
    `unable to create new content in namespace ${name} because it is being terminated`,
    [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${name} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  );
}

/**
 * Refuses a second default class, and the deletion of a system class.
 * Source: plugin/pkg/admission/priority/admission.go, pkg/registry/scheduling/priorityclass/storage/storage.go.
 *
 * @param next undefined for a deletion
 * @throws StatusError 403
 */
export async function admitPriorityClass(
  dependencies: ApiDependencies,
  name: string,
  next: KubePriorityClass | undefined,
): Promise<void> {
  if (next === undefined) {
    if (!isSystemPriorityClass(name)) return;
    throw status.forbidden(priorityclasses, name, 'this is a system priority class and cannot be deleted');
  }
  if (next.globalDefault !== true) return;
  const others = (await allClasses(dependencies)).filter(({ metadata }) => metadata.name !== next.metadata.name);
  const other = defaultPriorityClass(others);
  if (other === undefined) return;
  const why = `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`;
  throw status.forbidden(priorityclasses, next.metadata.name ?? '', why);
}

async function classesFor(dependencies: ApiDependencies, pod: KubeObject): Promise<PriorityClasses> {
  const name = priorityClassNameOf(pod);
  const system = systemPriorityClasses().find((each) => each.metadata.name === name);
  if (system !== undefined) return { named: system };
  const storage = dependencies.storageOf(priorityclasses);
  if (name !== '') return { named: await storage.get('', name) };
  return { globalDefault: defaultPriorityClass(await allClasses(dependencies)) };
}

async function allClasses(dependencies: ApiDependencies): Promise<readonly KubeObject[]> {
  const { items } = await dependencies.storageOf(priorityclasses).list({ namespace: '', limit: CLASSES_MAX });
  return items;
}
