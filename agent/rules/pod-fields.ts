/**
 * Values that a pod reads about itself, for variables and for files of the downward API.
 * Source: upstream pkg/kubelet/kubelet_pods.go (podFieldSelectorRuntimeValue), pkg/fieldpath/fieldpath.go and
 * pkg/api/v1/resource/helpers.go (ExtractContainerResourceValue).
 */

import type { Container, KubePod, ResourceFieldSelector, ResourceList } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';

/** What a pod may read about its machine. */
export interface MachineFacts {
  /** Undefined while it is unknown. */
  readonly hostIp: string | undefined;
  /** Absent: the pod shares the network of the machine, and its address. */
  readonly podIp?: string;
  /** Allocatable resources of the Node: the limit of a container without one. */
  readonly allocatable: ResourceList;
}

export type FieldValue =
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'failed'; readonly message: string };

const value = (text: string): FieldValue => ({ kind: 'value', text });
const failed = (message: string): FieldValue => ({ kind: 'failed', message });

const SUBSCRIPT = /^metadata\.(labels|annotations)\['(.*)'\]$/;
const NANOS_PER_MILLI = 1_000_000n;
const NANOS_PER_UNIT = 1_000_000_000n;
/** Limits that the Node's allocatable resources replace when the container sets none. */
const DEFAULTED_LIMITS: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage']);

export function podFieldValue(path: string, pod: KubePod, { hostIp = '', podIp = hostIp }: MachineFacts): FieldValue {
  const { metadata, spec } = pod;
  const subscript = SUBSCRIPT.exec(path);
  if (subscript !== null) return value(metadata[subscript[1] as 'labels' | 'annotations']?.[subscript[2] ?? ''] ?? '');
  switch (path) {
    case 'metadata.name':
      return value(metadata.name ?? '');
    case 'metadata.namespace':
      return value(metadata.namespace ?? '');
    case 'metadata.uid':
      return value(metadata.uid ?? '');
    case 'metadata.labels':
      return value(mapText(metadata.labels));
    case 'metadata.annotations':
      return value(mapText(metadata.annotations));
    case 'spec.nodeName':
      return value(spec?.nodeName ?? '');
    case 'spec.serviceAccountName':
      return value(spec?.serviceAccountName ?? '');
    case 'status.hostIP':
    case 'status.hostIPs':
      return value(hostIp);
    case 'status.podIP':
    case 'status.podIPs':
      return value(podIp);
    default:
      return failed(`unsupported fieldPath: ${path}`);
  }
}

/** One `key="value"` per line, sorted by key. */
const mapText = (map: Readonly<Record<string, string>> = {}): string =>
  Object.keys(map)
    .sort()
    .map((key) => `${key}=${goQuoted(map[key] ?? '')}`)
    .join('\n');

/** Go's %q: JSON, but for the escapes of control characters. */
const goQuoted = (text: string): string =>
  JSON.stringify(text).replace(/\\u00([0-9a-f]{2})/g, (_, digits: string) => `\\x${digits}`);

/** @param container the container of the reference, if that names none */
export function resourceFieldValue(
  reference: ResourceFieldSelector,
  pod: KubePod,
  container: Container | undefined,
  { allocatable }: MachineFacts,
): FieldValue {
  const { containerName = '', resource = '', divisor = '1' } = reference;
  const { initContainers = [], containers = [] } = pod.spec ?? {};
  const found =
    containerName === '' ? container : [...containers, ...initContainers].find(({ name }) => name === containerName);
  if (found === undefined) return failed(`container ${containerName} not found`);
  const [kind = '', name = ''] = splitOnce(resource);
  if (!isReadable(kind, name)) return failed(`unsupported container resource : ${resource}`);
  const { limits = {}, requests = {} } = found.resources ?? {};
  const own = kind === 'limits' ? limits[name] : requests[name];
  const amount = own ?? (kind === 'limits' && DEFAULTED_LIMITS.has(name) ? allocatable[name] : undefined) ?? '0';
  const unit = name === 'cpu' ? NANOS_PER_MILLI : NANOS_PER_UNIT;
  const divisorUnits = unitsOf(divisor, unit) || unitsOf('1', unit);
  return value(String(roundedUp(unitsOf(amount, unit), divisorUnits)));
}

const splitOnce = (resource: string): readonly string[] => {
  const dot = resource.indexOf('.');
  return dot < 0 ? [resource] : [resource.slice(0, dot), resource.slice(dot + 1)];
};

const isReadable = (kind: string, name: string): boolean =>
  (kind === 'limits' || kind === 'requests') && (DEFAULTED_LIMITS.has(name) || name.startsWith('hugepages-'));

const roundedUp = (amount: bigint, divisor: bigint): bigint => (amount + divisor - 1n) / divisor;

/** Rounded up. 0 for a malformed quantity. */
function unitsOf(quantity: string | number, unitNanos: bigint): bigint {
  const parsed = parseQuantity(String(quantity));
  return parsed.kind === 'parsed' ? roundedUp(parsed.quantity.nanos, unitNanos) : 0n;
}
