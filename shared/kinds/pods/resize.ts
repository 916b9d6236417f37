/**
 * The subresource `resize` of a pod: what it changes, and what it refuses.
 *
 * Source: pkg/registry/core/pod/strategy.go (dropNonResizeUpdates), pkg/apis/core/validation/validation.go
 * (ValidatePodResize, validateContainerResize). Pod-level resources and those of init containers that are no sidecars
 * are not resized: upstream 1.36 asks the node whether it can.
 */
import { forbiddenField, invalidValue, sameJson } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import type { Container, KubePod, PodSpec, ResourceList } from '../types.ts';
import { podQosClass, qosClassOf } from './pod-needs.ts';

export const MIRROR_POD = 'kubernetes.io/config.mirror';

const LISTS = ['initContainers', 'containers'] as const;

/** The old spec with the resources and resize policies of the next. Validation refuses other containers. */
export function resizedSpec(next: PodSpec, old: PodSpec): PodSpec {
  const spec = { ...old };
  for (const list of LISTS) {
    const [containers = [], before = []] = [next[list], old[list]];
    if (containers.length !== before.length) return next;
    if (before.length === 0) continue;
    spec[list] = containers.some(({ name }, index) => name !== before[index]!.name)
      ? containers
      : before.map(({ resources: _resources, resizePolicy: _policy, ...kept }, index) => {
          const { resources, resizePolicy } = containers[index]!;
          return { ...kept, ...(resources && { resources }), ...(resizePolicy && { resizePolicy }) };
        });
  }
  return { ...spec, ...(next.resources && { resources: next.resources }) };
}

const hasOwnResources = ({ resources }: PodSpec): boolean =>
  Object.keys({ ...resources?.requests, ...resources?.limits }).length > 0;

/** Why no resize of the pod is possible. */
function refusalOf(spec: PodSpec, old: KubePod): string | undefined {
  if ([spec, old.spec ?? {}].some(hasOwnResources)) return 'pods with pod-level resources cannot be resized';
  if (old.metadata.annotations?.[MIRROR_POD] !== undefined) return 'static pods cannot be resized';
  return old.spec?.os?.name === 'windows' ? 'windows pods cannot be resized' : undefined;
}

/** Containers that were added, removed, renamed or moved. */
const orderCauses = (spec: PodSpec, old: PodSpec): Cause[] =>
  LISTS.flatMap((list) => {
    const [containers = [], before = []] = [spec[list], old[list]];
    if (containers.length !== before.length) {
      return [forbiddenField(`spec.${list}`, `${list} may not be added or removed on resize`)];
    }
    return containers.flatMap(({ name }, index) =>
      name === before[index]!.name
        ? []
        : [forbiddenField(`spec.${list}[${index}].name`, `${list} may not be renamed or reordered on resize`)],
    );
  });

/** A node that reports no resources of a running container resizes none. */
const isUnsupported = ({ status }: KubePod): boolean => {
  const running = status?.containerStatuses?.find(({ state }) => state?.running !== undefined);
  return running !== undefined && running.resources === undefined;
};

const fixed = ({ cpu: _cpu, memory: _memory, ...others }: ResourceList = {}): ResourceList => others;

/** Parts of a container that a resize does not change. */
const fixedParts = ({ resources = {}, resizePolicy }: Container): object => ({
  ...resources,
  limits: fixed(resources.limits),
  requests: fixed(resources.requests),
  resizePolicy,
});

function containerCauses(next: Container, old: Container, field: string, text: string): Cause[] {
  const causes = (['requests', 'limits'] as const).flatMap((list) => {
    const kept = next.resources?.[list] ?? {};
    const isKept = Object.keys(old.resources?.[list] ?? {}).every((name) => name in kept);
    return isKept ? [] : [forbiddenField(`${field}.resources.${list}`, `resource ${list} cannot be removed`)];
  });
  if (!sameJson(fixedParts(next), fixedParts(old))) causes.push(forbiddenField('spec', text));
  return causes;
}

export function validateResize(spec: PodSpec, old: KubePod): Cause[] {
  const refusal = refusalOf(spec, old);
  // Upstream's path of no field.
  if (refusal !== undefined) return [forbiddenField('[]', refusal)];
  const causes: Cause[] = [];
  const qosClass = podQosClass(old);
  if (qosClass !== qosClassOf(spec)) {
    causes.push(invalidValue('spec', qosClass, 'Pod QOS Class may not change as a result of resizing'));
  }
  if (isUnsupported(old)) causes.push(forbiddenField('spec', 'Pod running on node without support for resize'));
  const { containers = [], initContainers = [] } = old.spec ?? {};
  const moved = orderCauses(spec, old.spec ?? {});
  if (moved.length > 0) return [...causes, ...moved];
  for (const [index, before] of initContainers.entries()) {
    const next = spec.initContainers![index]!;
    if (before.restartPolicy !== 'Always') {
      if (!sameJson(next, before)) {
        causes.push(forbiddenField('spec', 'resources for non-sidecar init containers are immutable'));
      }
      continue;
    }
    const text = 'only cpu and memory resources for sidecar containers are mutable';
    causes.push(...containerCauses(next, before, `spec.initContainers[${index}]`, text));
  }
  for (const [index, before] of containers.entries()) {
    const text = 'only cpu and memory resources are mutable';
    causes.push(...containerCauses(spec.containers![index]!, before, `spec.containers[${index}]`, text));
  }
  return causes;
}
