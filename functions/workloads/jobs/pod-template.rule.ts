/** The pods of a Job. Sources: pkg/controller/job/{job_controller,indexed_job_utils}.go. */
import type { Container, KubeJob, PodTemplateSpec } from '../../../shared/kinds/types.ts';
import { TRACKING } from '../owned-pods.rule.ts';
import { podNameFor } from '../template.rule.ts';
import { failureAnnotations, type IndexFailures, NO_INDEX_FAILURES } from './index-failures.rule.ts';
import { INDEX } from './indexes.rule.ts';

const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';
/** Characters of a generated name without its suffix. */
const PREFIX_CHARACTERS_MAX = 58;

/** The template with the finalizer, and for an Indexed Job with the index of the pod and the failures before it. */
export function podTemplateOf(
  { metadata, spec }: KubeJob,
  index: number | undefined,
  failures: IndexFailures = NO_INDEX_FAILURES,
): PodTemplateSpec {
  const { template = {} } = spec ?? {};
  const finalizers = [...(template.metadata?.finalizers ?? []).filter((each) => each !== TRACKING), TRACKING];
  const tracked = { ...template, metadata: { ...template.metadata, finalizers } };
  if (index === undefined) return tracked;
  const value = String(index);
  const { containers = [], initContainers } = template.spec ?? {};
  return {
    metadata: {
      ...tracked.metadata,
      annotations: {
        ...tracked.metadata.annotations,
        [INDEX]: value,
        ...(spec?.backoffLimitPerIndex === undefined ? {} : failureAnnotations(failures)),
      },
      labels: { ...tracked.metadata.labels, [INDEX]: value },
    },
    spec: {
      ...template.spec,
      hostname: `${metadata.name ?? ''}-${value}`,
      containers: containers.map(withIndex),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withIndex) }),
    },
  };
}

/** A variable of this name in the template stays. */
function withIndex(container: Container): Container {
  const { env = [] } = container;
  if (env.some(({ name }) => name === INDEX_VARIABLE)) return container;
  const fieldRef = { apiVersion: 'v1', fieldPath: `metadata.labels['${INDEX}']` };
  return { ...container, env: [...env, { name: INDEX_VARIABLE, valueFrom: { fieldRef } }] };
}

export function jobPodName(
  { metadata: { name = '', uid = '' } }: KubeJob,
  index: number | undefined,
  seed: { readonly fence: number; readonly position: number },
): string {
  if (index === undefined) return podNameFor(name, { uid, ...seed });
  const ending = `-${index}`;
  return podNameFor(name.slice(0, PREFIX_CHARACTERS_MAX - 1 - ending.length) + ending, { uid, ...seed });
}
