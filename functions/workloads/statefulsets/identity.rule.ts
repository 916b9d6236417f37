/**
 * Names and identities of the pods of a StatefulSet. Pure. Source:
 * pkg/controller/statefulset/stateful_set_utils.go.
 */
import type { KubePod, PodTemplateSpec } from '../../../shared/kinds/types.ts';
import { REVISION_LABEL } from '../revisions.rule.ts';

const NAME_LABEL = 'statefulset.kubernetes.io/pod-name';
const INDEX_LABEL = 'apps.kubernetes.io/pod-index';

export const podNameOf = (setName: string, ordinal: number): string => `${setName}-${ordinal}`;

/** Undefined: the name is not that of a pod of this set. */
export function ordinalOf(setName: string, podName: string): number | undefined {
  const digits = podName.startsWith(`${setName}-`) ? podName.slice(setName.length + 1) : '';
  const ordinal = /^\d{1,10}$/.test(digits) ? Number(digits) : undefined;
  return ordinal !== undefined && podNameOf(setName, ordinal) === podName ? ordinal : undefined;
}

/** The template of one pod. */
export function templateForOrdinal(
  template: PodTemplateSpec,
  of: { readonly setName: string; readonly serviceName: string; readonly ordinal: number; readonly revision: string },
): PodTemplateSpec {
  const name = podNameOf(of.setName, of.ordinal);
  const { metadata = {}, spec = {} } = template;
  return {
    metadata: {
      ...metadata,
      labels: {
        ...metadata.labels,
        [NAME_LABEL]: name,
        [INDEX_LABEL]: String(of.ordinal),
        [REVISION_LABEL]: of.revision,
      },
    },
    spec: { ...spec, hostname: name, ...(of.serviceName === '' ? {} : { subdomain: of.serviceName }) },
  };
}

/** The pod with its name label; undefined: it has it. */
export function withIdentity(pod: KubePod): KubePod | undefined {
  const { name = '', labels = {} } = pod.metadata;
  if (labels[NAME_LABEL] === name) return undefined;
  return { ...pod, metadata: { ...pod.metadata, labels: { ...labels, [NAME_LABEL]: name } } };
}
