/**
 * Which taints a pod tolerates, and for how long.
 *
 * Only `NoExecute` taints evict pods, with any key. For each taint the first matching toleration in list order is used.
 * A later one is ignored, even if it is shorter. Source: Kubernetes "Taints and Tolerations";
 * staging/src/k8s.io/api/core/v1/toleration.go, pkg/controller/tainteviction/taint_eviction.go.
 */
import type { Taint, Toleration } from '../../kubernetes/kubernetes.ts';
import { boundedSeconds } from '../../store/stored-seconds.ts';

/** How long a pod tolerates a taint: forever, or a number of seconds. 0: it is evicted immediately. */
export type TolerationTime = { readonly kind: 'forever' } | { readonly kind: 'seconds'; readonly seconds: number };

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

function int64(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?\d{1,19}$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}

/**
 * Whether a toleration matches a taint. An empty effect or key matches all. `Exists` ignores the value; `Equal`, the
 * default, requires the same value. `Lt` and `Gt` require 64-bit integers, with the taint's value smaller or larger
 * than the toleration's.
 */
export function tolerates(toleration: Toleration, taint: Pick<Taint, 'key' | 'value' | 'effect'>): boolean {
  if (toleration.effect !== undefined && (toleration.effect as string) !== '' && toleration.effect !== taint.effect) {
    return false;
  }
  if (toleration.key !== undefined && toleration.key !== '' && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? '') {
    case 'Exists':
      return true;
    case '':
    case 'Equal':
      return (toleration.value ?? '') === (taint.value ?? '');
    case 'Lt':
    case 'Gt': {
      const ofTaint = int64(taint.value);
      const ofToleration = int64(toleration.value);
      if (ofTaint === undefined || ofToleration === undefined) return false;
      return toleration.operator === 'Lt' ? ofTaint < ofToleration : ofTaint > ofToleration;
    }
    default:
      return false;
  }
}

/** The toleration used for a taint: the first that matches, in list order. */
export function tolerationFor(
  tolerations: readonly Toleration[],
  taint: Pick<Taint, 'key' | 'value' | 'effect'>,
): Toleration | undefined {
  return tolerations.find((toleration) => tolerates(toleration, taint));
}

/**
 * How long a toleration delays the eviction:
 *   - without seconds: forever; also if tolerationSeconds is not a number, because a mistake must not delete a pod
 *   - zero or less, or no toleration at all: 0
 *   - too large a number: SECONDS_MAX
 */
export function tolerationTime(toleration: Toleration | undefined): TolerationTime {
  if (toleration === undefined) return { kind: 'seconds', seconds: 0 };
  // Some clients send null for an unset field.
  const seconds = boundedSeconds(toleration.tolerationSeconds);
  return seconds === undefined ? { kind: 'forever' } : { kind: 'seconds', seconds };
}
