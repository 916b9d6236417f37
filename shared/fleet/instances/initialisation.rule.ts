/**
 * Initialises a new node from the metadata of its instance, found by providerID: instance type, zone, region,
 * addresses. Then removes the uninitialized taint.
 *
 * Source: staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go,
 * staging/src/k8s.io/cloud-provider/node/helpers/address.go, staging/src/k8s.io/component-helpers/node/util/ips.go.
 */

import type { EventText } from '../../events/event-text.ts';
import type { Taint } from '../../kubernetes/kubernetes.ts';
import { type IpAddress, parseAddress } from '../cidrs/cidr.ts';
import { BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL } from '../nodes/node-digest.ts';
import { TAINT_UNINITIALIZED } from '../nodes/taint.ts';
import { type InstanceMetadata, type NodeAddress, PROVIDED_NODE_IP_ANNOTATION } from './instance.ts';
export const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';
export const BETA_INSTANCE_TYPE_LABEL = 'beta.kubernetes.io/instance-type';

export type MetadataAnswer =
  | { readonly kind: 'metadata'; readonly metadata: InstanceMetadata }
  /** The provider has no metadata for this node. */
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly message: string };

export interface UninitialisedNode {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Readonly<Taint>[];
  readonly addresses: readonly NodeAddress[];
}

export type Initialisation =
  | { readonly kind: 'notNeeded' }
  /** The taint stays. The next change of the Node repeats the initialisation. */
  | { readonly kind: 'nothingKnown' }
  /** The taint stays. Retried later. */
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'initialised';
      /** New metadata.labels and spec.taints, for one write. */
      readonly labels: Readonly<Record<string, string>>;
      readonly taints: readonly Readonly<Taint>[];
      /** New status.addresses, for a second write. Absent: unchanged. */
      readonly addresses: readonly NodeAddress[] | undefined;
      readonly event: EventText;
    };

const SYNCED: EventText = Object.freeze({
  type: 'Normal',
  reason: 'Synced',
  message: 'Node synced successfully',
  source: 'cloud-node-controller',
});

/** Whether a node has the uninitialized taint. Only its key counts, not its effect. */
export const isUninitialised = (taints: readonly Readonly<Taint>[]): boolean =>
  taints.some((taint) => taint.key === TAINT_UNINITIALIZED);

export function initialiseNode(node: UninitialisedNode, answer: MetadataAnswer): Initialisation {
  if (!isUninitialised(node.taints)) return { kind: 'notNeeded' };
  if (answer.kind === 'failed') return { kind: 'failed', reason: `no instance metadata: ${answer.message}` };
  if (answer.kind === 'none') return { kind: 'nothingKnown' };

  const { metadata } = answer;
  const preferred = providedFirst(node.annotations, metadata.addresses);
  if (preferred.kind === 'refused') return { kind: 'failed', reason: preferred.reason };
  return {
    kind: 'initialised',
    labels: labelsFor(node.labels, metadata),
    taints: node.taints.filter((taint) => taint.key !== TAINT_UNINITIALIZED),
    addresses: addressesToWrite(node, metadata.addresses),
    event: SYNCED,
  };
}

type ProvidedIps =
  | { readonly kind: 'ips'; readonly ips: readonly { readonly text: string; readonly address: IpAddress }[] }
  | { readonly kind: 'refused'; readonly reason: string };

/** The parser is as strict as upstream's, except that leading zeros in an IPv4 address are accepted. */
const readIp = (text: string): IpAddress | undefined =>
  parseAddress(text.includes(':') ? text : text.replace(/(^|\.)0+(?=\d)/g, '$1'));

/** The addresses in the annotation provided-node-ip. Refused if one is malformed or empty, as upstream. */
function providedIps(annotations: Readonly<Record<string, string>>): ProvidedIps {
  const annotation = annotations[PROVIDED_NODE_IP_ANNOTATION];
  if (annotation === undefined) return { kind: 'ips', ips: [] };
  const ips: { text: string; address: IpAddress }[] = [];
  for (const text of annotation.split(',')) {
    const address = readIp(text);
    if (address === undefined) {
      return { kind: 'refused', reason: `provided node ip ${JSON.stringify(text)} is not an IP address` };
    }
    ips.push({ text, address });
  }
  const [first, second] = ips;
  if (ips.length > 2 || (second !== undefined && first?.address.family === second.address.family)) {
    return {
      kind: 'refused',
      reason: `provided node ip ${annotation} must be one address, or an IPv4 and an IPv6 address`,
    };
  }
  if (second !== undefined && ips.some(({ address }) => address.value === 0n)) {
    return { kind: 'refused', reason: `provided node ip ${annotation} contains an unspecified address` };
  }
  return { kind: 'ips', ips };
}

/** The addresses by type. Those of the annotation come first within their type, in the annotation's order. */
function providedFirst(
  annotations: Readonly<Record<string, string>>,
  addresses: readonly NodeAddress[],
):
  | { readonly kind: 'ordered'; readonly addresses: NodeAddress[] }
  | Extract<ProvidedIps, { readonly kind: 'refused' }> {
  const provided = providedIps(annotations);
  if (provided.kind === 'refused') return provided;
  const { ips } = provided;
  // Index in the annotation; addresses that it does not name come last.
  const rank = ({ address }: NodeAddress): number => {
    const ip = readIp(address);
    const at = ips.findIndex(({ address: wanted }) => ip?.family === wanted.family && ip.value === wanted.value);
    return at < 0 ? ips.length : at;
  };
  const ranks = addresses.map(rank);
  const missing = ips.findLast((_, at) => !ranks.includes(at));
  if (missing !== undefined) {
    return { kind: 'refused', reason: `provided node ip ${missing.text} is not among the addresses of the instance` };
  }
  const types = addresses.map(({ type }) => type);
  const byType = (a: NodeAddress, b: NodeAddress): number => types.indexOf(a.type) - types.indexOf(b.type);
  return { kind: 'ordered', addresses: addresses.toSorted((a, b) => byType(a, b) || rank(a) - rank(b)) };
}

/**
 * Keys in kubernetes.io, k8s.io and their subdomains are reserved: a provider may not set them as additional labels.
 */
function isKubernetesKey(key: string): boolean {
  const slash = key.indexOf('/');
  if (slash < 0) return false;
  const namespace = key.slice(0, slash);
  return ['kubernetes.io', 'k8s.io'].some((own) => namespace === own || namespace.endsWith(`.${own}`));
}

function labelsFor(present: Readonly<Record<string, string>>, metadata: InstanceMetadata): Record<string, string> {
  const labels = { ...present };
  for (const [key, value] of Object.entries(metadata.additionalLabels)) {
    if (!(key in labels) && !isKubernetesKey(key)) labels[key] = value;
  }
  const provided: readonly [string, readonly string[]][] = [
    [metadata.instanceType, [BETA_INSTANCE_TYPE_LABEL, INSTANCE_TYPE_LABEL]],
    [metadata.zone, [BETA_ZONE_LABEL, ZONE_LABEL]],
    [metadata.region, [BETA_REGION_LABEL, REGION_LABEL]],
  ];
  for (const [value, keys] of provided) {
    if (value === '') continue;
    for (const key of keys) labels[key] = value;
  }
  return labels;
}

const byIdentity = (one: NodeAddress, other: NodeAddress): number =>
  `${one.type} ${one.address}` < `${other.type} ${other.address}` ? -1 : 1;

const byType = (one: NodeAddress, other: NodeAddress): number =>
  one.type < other.type ? -1 : one.type > other.type ? 1 : 0;

const groupedByType = (addresses: readonly NodeAddress[]) => Map.groupBy(addresses, ({ type }) => type);

/**
 * The node's addresses from the provider, or undefined when nothing is to be written. That is the case when the
 * provider returns no address or the same set, or when the annotation does not match.
 *
 * Existing Hostname entries stay when the provider has none. Addresses of the annotation come first within their type.
 */
export function addressesToWrite(
  node: Pick<UninitialisedNode, 'addresses' | 'annotations'>,
  fromProvider: readonly NodeAddress[],
): NodeAddress[] | undefined {
  if (fromProvider.length === 0) return undefined;
  const ownHostnames = fromProvider.some(({ type }) => type === 'Hostname')
    ? []
    : node.addresses.filter(({ type }) => type === 'Hostname');
  const preferred = providedFirst(node.annotations, [...fromProvider, ...ownHostnames]);
  if (preferred.kind === 'refused') return undefined;
  const ordered = preferred.addresses;
  const textOf = (addresses: readonly NodeAddress[]): string =>
    addresses.map(({ type, address }) => `${type} ${address}`).join();
  const isSameSet = textOf(ordered.toSorted(byIdentity)) === textOf(node.addresses.toSorted(byIdentity));
  if (!isSameSet) return ordered;
  // Another order of the same addresses causes no write, except for the addresses of the annotation.
  const provided = node.annotations[PROVIDED_NODE_IP_ANNOTATION]?.split(',').length ?? 0;
  const heads = (addresses: readonly NodeAddress[]): string =>
    textOf([...groupedByType(addresses).values()].flatMap((ofType) => ofType.slice(0, provided)).toSorted(byType));
  return heads(ordered) === heads(node.addresses) ? undefined : ordered;
}
