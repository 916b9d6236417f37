/**
 * Whether a node matches the nodeSelector and the required node affinity of a pod. Source: upstream
 * staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
 *
 * - The selector must match, and at least one term. All requirements of that term must match.
 * - A term without requirements, and a malformed requirement, match nothing.
 */

import type { KubeObject } from '../../shared/kinds/types.ts';
import { listOf, recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';

type Labels = Readonly<Record<string, string>>;
type Json = Readonly<Record<string, unknown>>;

const INTEGER = /^[+-]?\d{1,18}$/;

function holds(demand: Json, has: boolean, value: string): boolean {
  const values = listOf(demand['values']).map(String);
  switch (demand['operator']) {
    case 'In':
      return has && values.includes(value);
    case 'NotIn':
      return !has || !values.includes(value);
    case 'Exists':
      return has;
    case 'DoesNotExist':
      return !has;
    case 'Gt':
    case 'Lt': {
      const bound = values[0] ?? '';
      if (!has || values.length !== 1 || !INTEGER.test(value) || !INTEGER.test(bound)) return false;
      return demand['operator'] === 'Gt' ? BigInt(value) > BigInt(bound) : BigInt(value) < BigInt(bound);
    }
    default:
      return false;
  }
}

function termHolds(term: Json, labels: Labels, nodeName: string): boolean {
  const byLabel = recordsOf(term['matchExpressions']);
  const byField = recordsOf(term['matchFields']);
  if (byLabel.length === 0 && byField.length === 0) return false;
  return (
    byLabel.every((demand) => {
      const key = textOf(demand['key']);
      return holds(demand, Object.hasOwn(labels, key), labels[key] ?? '');
    }) && byField.every((demand) => demand['key'] === 'metadata.name' && holds(demand, true, nodeName))
  );
}

export function matchesNodeAffinity(pod: KubeObject, labels: Labels, nodeName: string): boolean {
  const spec = recordOf(pod.spec);
  const selector = Object.entries(recordOf(spec['nodeSelector']));
  if (!selector.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)) return false;
  const affinity = recordOf(recordOf(spec['affinity'])['nodeAffinity']);
  const required = affinity['requiredDuringSchedulingIgnoredDuringExecution'];
  if (required === undefined || required === null) return true;
  return recordsOf(recordOf(required)['nodeSelectorTerms']).some((term) => termHolds(term, labels, nodeName));
}
