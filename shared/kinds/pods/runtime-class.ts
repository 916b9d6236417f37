/** What a RuntimeClass adds to a pod that names it. Pure. Source: plugin/pkg/admission/runtimeclass/admission.go. */
import { defined } from '../../defined.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import type { KubePod, KubeRuntimeClass, ResourceList, Toleration } from '../types.ts';

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
