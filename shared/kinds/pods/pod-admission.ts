/**
 * What admission adds to a new pod, and why it refuses one. Pure. Sources: plugin/pkg/admission/<PLUGIN>/admission.go.
 *
 * - serviceaccount: its ServiceAccount, and the volume with the token
 * - priority: the priority of its class
 * - runtimeclass: overhead, node selector and tolerations of the RuntimeClass that it names
 */

import { MIRROR_POD_ANNOTATION } from '../../access/node-restriction.ts';
import { defined } from '../../defined.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { ResolvedPriority } from '../descriptor.ts';
import { DEFAULT_ACCOUNT, ROOT_CA } from '../stored-resource.ts';
import type {
  Container,
  KubeObject,
  KubePod,
  KubePriorityClass,
  KubeRuntimeClass,
  KubeServiceAccount,
  PodSpec,
  ResourceList,
  Toleration,
  Volume,
} from '../types.ts';
import { referencesOf } from './pod-references.ts';

/** Where containers find the token, the namespace and the certificates of the API. */
export const TOKEN_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
const TOKEN_VOLUME_PREFIX = 'kube-api-access-';
/** An hour and 7 seconds, as upstream: the seconds mark tokens of this volume. */
const TOKEN_SECONDS = 3607;
/** Letters and digits of generated names (staging/src/k8s.io/apimachinery/pkg/util/rand). */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

export const isMirrorPod = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[MIRROR_POD_ANNOTATION] !== undefined;

/** Name of the account that a new pod runs as. Undefined for a mirror pod, which has none. */
export const accountNameOf = (pod: KubePod): string | undefined =>
  isMirrorPod(pod) ? undefined : pod.spec?.serviceAccountName || pod.spec?.serviceAccount || DEFAULT_ACCOUNT;

/** Why a new mirror pod is refused. Undefined: it is permitted. */
export function mirrorPodRefusal(pod: KubePod): string | undefined {
  const { serviceAccountName, serviceAccount, volumes = [] } = pod.spec ?? {};
  if (serviceAccountName || serviceAccount) return 'a mirror pod may not reference service accounts';
  const { [MIRROR_POD_ANNOTATION]: _mirror, ...annotations } = pod.metadata.annotations ?? {};
  const references = referencesOf({ metadata: { ...pod.metadata, annotations }, ...defined({ spec: pod.spec }) });
  if (references.some((key) => key.startsWith('secrets/'))) return 'a mirror pod may not reference secrets';
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? []);
  return sources.some((source) => source.serviceAccountToken !== undefined)
    ? 'a mirror pod may not use ServiceAccountToken volume projections'
    : undefined;
}

/** @param account undefined: it does not exist */
export const accountRefusal = (
  namespace: string,
  name: string,
  account: KubeServiceAccount | undefined,
): string | undefined =>
  account === undefined
    ? `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`
    : undefined;

/**
 * The pod with its account, the image pull secrets of the account, and the volume with its token. The suffix of the
 * volume's name follows from the uid of the pod, which is random.
 */
export function withAccount(pod: KubePod, account: KubeServiceAccount): KubePod {
  const name = accountNameOf(pod);
  if (name === undefined) return pod;
  const spec: PodSpec = { ...pod.spec, serviceAccountName: name, serviceAccount: name };
  const pullSecrets = account.imagePullSecrets ?? [];
  if ((spec.imagePullSecrets ?? []).length === 0 && pullSecrets.length > 0) spec.imagePullSecrets = [...pullSecrets];
  const automounts = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  return { ...pod, spec: automounts ? withTokenVolume(spec, pod.metadata.uid ?? '') : spec };
}

function withTokenVolume(spec: PodSpec, uid: string): PodSpec {
  const { volumes = [] } = spec;
  const existing = volumes.find(({ name = '' }) => name.startsWith(TOKEN_VOLUME_PREFIX))?.name;
  const name = existing ?? `${TOKEN_VOLUME_PREFIX}${suffixOf(uid)}`;
  const isMounted = ({ volumeMounts }: Container): boolean =>
    (volumeMounts ?? []).some(({ mountPath }) => mountPath === TOKEN_DIRECTORY);
  const mounted = (containers: readonly Container[] | undefined): Container[] | undefined =>
    containers?.map((container) =>
      isMounted(container)
        ? container
        : {
            ...container,
            volumeMounts: [...(container.volumeMounts ?? []), { name, mountPath: TOKEN_DIRECTORY, readOnly: true }],
          },
    );
  const needsVolume = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].some((each) => !isMounted(each));
  if (!needsVolume) return spec;
  return {
    ...spec,
    ...defined({ initContainers: mounted(spec.initContainers), containers: mounted(spec.containers) }),
    ...(existing === undefined ? { volumes: [...volumes, tokenVolume(name)] } : {}),
  };
}

const tokenVolume = (name: string): Volume => ({
  name,
  projected: {
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
      { configMap: { name: ROOT_CA, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
    defaultMode: 420,
  },
});

/** Five letters and digits from the first digits of a uid. */
function suffixOf(uid: string): string {
  const digits = uid.replaceAll('-', '').padEnd(2 * SUFFIX_LENGTH, '0');
  const letters = Array.from({ length: SUFFIX_LENGTH }, (_, index) => {
    const value = Number.parseInt(digits.slice(2 * index, 2 * index + 2), 16);
    return SUFFIX_ALPHABET[(Number.isNaN(value) ? 0 : value) % SUFFIX_ALPHABET.length];
  });
  return letters.join('');
}

export const DEFAULT_PREEMPTION_POLICY = 'PreemptLowerPriority';

export type PriorityOutcome =
  | { readonly kind: 'resolved'; readonly priority: ResolvedPriority }
  /** Answer 403 with this text: forbidden(pods, name, why). `field` is the refused field of the spec. */
  | { readonly kind: 'refused'; readonly field: string; readonly why: string };

/** The classes of the cluster that priority admission reads. */
export interface PriorityClasses {
  /** The class that the pod names, if it exists. */
  readonly named?: KubePriorityClass | undefined;
  /** The class for pods that name none, if there is one. */
  readonly globalDefault?: KubePriorityClass | undefined;
}

/** The class for pods that name none. If there are several, the one with the lowest value applies, as upstream. */
export function defaultPriorityClass(classes: readonly KubePriorityClass[]): KubePriorityClass | undefined {
  const defaults = classes.filter((each) => each.globalDefault === true);
  return defaults.sort((left, right) => (left.value ?? 0) - (right.value ?? 0))[0];
}

/** Name of the PriorityClass to look up; '' when the pod names none. */
export const priorityClassNameOf = (pod: KubePod): string => pod.spec?.priorityClassName ?? '';

const ofClass = (priorityClass: KubePriorityClass): ResolvedPriority => ({
  priority: priorityClass.value ?? 0,
  priorityClassName: priorityClass.metadata.name ?? '',
  preemptionPolicy: priorityClass.preemptionPolicy || DEFAULT_PREEMPTION_POLICY,
});

/** The priority of a new pod. */
export function resolvePriority(pod: KubePod, classes: PriorityClasses): PriorityOutcome {
  const name = priorityClassNameOf(pod);
  if (name !== '' && classes.named === undefined) {
    return { kind: 'refused', field: 'priorityClassName', why: `no PriorityClass with name ${name} was found` };
  }
  const chosen = name === '' ? classes.globalDefault : classes.named;
  const priority: ResolvedPriority =
    chosen === undefined ? { priority: 0, preemptionPolicy: DEFAULT_PREEMPTION_POLICY } : ofClass(chosen);
  const { priority: given, preemptionPolicy: policy } = pod.spec ?? {};
  if (given !== undefined && given !== priority.priority) {
    return {
      kind: 'refused',
      field: 'priority',
      why: `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority.priority} from the given PriorityClass name`,
    };
  }
  if (policy !== undefined && policy !== priority.preemptionPolicy) {
    return {
      kind: 'refused',
      field: 'preemptionPolicy',
      why: `the string value of PreemptionPolicy (${policy}) must not be provided in pod spec; priority admission controller computed ${priority.preemptionPolicy} from the given PriorityClass name`,
    };
  }
  return { kind: 'resolved', priority };
}

/** '' when the pod names none. */
export const runtimeClassNameOf = ({ spec = {} }: KubePod): string => spec.runtimeClassName ?? '';

/** Why the pod may not be created; the text of a 403. undefined: it may. */
export function runtimeClassRefusal(pod: KubePod, runtimeClass: KubeRuntimeClass | undefined): string | undefined {
  const name = runtimeClassNameOf(pod);
  if (name !== '' && runtimeClass === undefined) return `pod rejected: RuntimeClass "${name}" not found`;
  const { overhead, nodeSelector = {} } = pod.spec ?? {};
  const fixed = runtimeClass?.overhead?.podFixed;
  if (runtimeClass?.overhead === undefined) {
    if (overhead !== undefined)
      return 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead';
  } else if (overhead !== undefined && !isSame(overhead, fixed)) {
    return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
  }
  for (const [key, value] of Object.entries(runtimeClass?.scheduling?.nodeSelector ?? {})) {
    const own = nodeSelector[key];
    if (own === undefined || own === value) continue;
    return `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`;
  }
  return undefined;
}

const isSame = (one: ResourceList, other: ResourceList = {}): boolean => jsonEqual(one, other);

/** The pod with overhead, node selector and tolerations of its class. */
export function withRuntimeClass(pod: KubePod, runtimeClass: KubeRuntimeClass | undefined): KubePod {
  if (runtimeClass === undefined) return pod;
  const { overhead, scheduling } = runtimeClass;
  const spec = pod.spec ?? {};
  const nodeSelector =
    scheduling?.nodeSelector === undefined ? undefined : { ...spec.nodeSelector, ...scheduling.nodeSelector };
  const tolerations =
    scheduling?.tolerations === undefined ? undefined : merged(spec.tolerations ?? [], scheduling.tolerations);
  return { ...pod, spec: { ...spec, ...defined({ overhead: overhead?.podFixed, nodeSelector, tolerations }) } };
}

/** A toleration that another one covers is left out (pkg/util/tolerations/tolerations.go). */
function merged(one: readonly Toleration[], other: readonly Toleration[]): Toleration[] {
  const all = [...one, ...other];
  return all.filter(
    (each, index) =>
      !all.some((wider, at) => at !== index && covers(wider, each) && !(index < at && covers(each, wider))),
  );
}

/** `wider` tolerates every taint that `narrow` tolerates, for at least as long. */
function covers(wider: Toleration, narrow: Toleration): boolean {
  if (jsonEqual(wider, narrow)) return true;
  const operator = ({ operator: own = 'Equal' }: Toleration) => own || 'Equal';
  const wildcard = (wider.key ?? '') === '' && operator(wider) === 'Exists';
  if (!wildcard && (wider.key ?? '') !== (narrow.key ?? '')) return false;
  if ((wider.effect ?? '') !== '' && wider.effect !== narrow.effect) return false;
  if (wider.effect === 'NoExecute' && wider.tolerationSeconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || wider.tolerationSeconds < narrow.tolerationSeconds) return false;
  }
  if (operator(wider) === 'Exists') return true;
  return operator(narrow) === 'Equal' && (wider.value ?? '') === (narrow.value ?? '');
}
