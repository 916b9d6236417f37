/**
 * What the cloud tells about a new node: providerID, instance type, zone, region and addresses; after which the
 * uninitialized taint goes.
 *
 * Source: staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go,
 * staging/src/k8s.io/cloud-provider/node/helpers/address.go.
 */
import type { EventText } from './event-text.ts';
import type { Taint } from './kubernetes.ts';
import { TAINT_UNINITIALIZED } from './taint.ts';
import { BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL } from './zone.ts';

/** Comma-separated: one address, or one of each family. */
export const PROVIDED_NODE_IP_ANNOTATION = 'alpha.kubernetes.io/provided-node-ip';
export const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';
export const BETA_INSTANCE_TYPE_LABEL = 'beta.kubernetes.io/instance-type';

export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

/** What the provider knows of an instance. Empty strings mean it does not say. */
export interface InstanceMetadata {
  readonly providerId: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly region: string;
  readonly addresses: readonly NodeAddress[];
  readonly additionalLabels: Readonly<Record<string, string>>;
}

export type MetadataAnswer =
  | { readonly kind: 'metadata'; readonly metadata: InstanceMetadata }
  /** The provider has nothing to say about this node. */
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly message: string };

export interface UninitialisedNode {
  readonly providerId: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Readonly<Taint>[];
  readonly addresses: readonly NodeAddress[];
}

export type Initialisation =
  | { readonly kind: 'notNeeded' }
  /** The taint stays; nothing to try again before the next change of the node. */
  | { readonly kind: 'nothingKnown' }
  /** The taint stays; try again later. */
  | { readonly kind: 'failed'; readonly reason: string }
  | {
      readonly kind: 'initialised';
      /** spec.providerID, spec.taints and metadata.labels as they should be, for one write. */
      readonly providerId: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly taints: readonly Readonly<Taint>[];
      /** status.addresses for a second write; absent when they stay. */
      readonly addresses: readonly NodeAddress[] | undefined;
      readonly event: EventText;
    };

const SYNCED: EventText = Object.freeze({
  type: 'Normal',
  reason: 'Synced',
  message: 'Node synced successfully',
  source: 'cloud-node-controller',
});

/** The taint is matched by its key alone, whatever its effect. */
export const isUninitialised = (taints: readonly Readonly<Taint>[]): boolean =>
  taints.some((taint) => taint.key === TAINT_UNINITIALIZED);

/** The id a node goes by: its own, else what the provider says; undefined when neither does. */
export const providerIdFor = (ofNode: string | undefined, ofMetadata: string | undefined): string | undefined =>
  [ofNode, ofMetadata].find((id) => id !== undefined && id !== '');

export function initialiseNode(node: UninitialisedNode, answer: MetadataAnswer): Initialisation {
  if (!isUninitialised(node.taints)) return { kind: 'notNeeded' };
  if (answer.kind === 'failed') return { kind: 'failed', reason: `no instance metadata: ${answer.message}` };
  if (answer.kind === 'none') return { kind: 'nothingKnown' };

  const { metadata } = answer;
  const providerId = providerIdFor(node.providerId, metadata.providerId);
  if (providerId === undefined)
    return { kind: 'failed', reason: 'neither node nor instance metadata has a providerID' };
  const provided = providedIps(node.annotations);
  for (const address of provided) {
    if (metadata.addresses.some((known) => known.address === address)) continue;
    return { kind: 'failed', reason: `provided node ip ${address} is not among the addresses of the instance` };
  }
  return {
    kind: 'initialised',
    providerId,
    labels: labelsFor(node.labels, metadata),
    taints: node.taints.filter((taint) => taint.key !== TAINT_UNINITIALIZED),
    addresses: addressesToWrite(node, metadata.addresses),
    event: SYNCED,
  };
}

const providedIps = (annotations: Readonly<Record<string, string>>): string[] =>
  (annotations[PROVIDED_NODE_IP_ANNOTATION] ?? '')
    .split(',')
    .map((address) => address.trim())
    .filter((address) => address !== '');

/** Keys in kubernetes.io, k8s.io and below are Kubernetes' own: a provider may not set them as additional labels. */
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
  const told: readonly [string, readonly string[]][] = [
    [metadata.instanceType, [BETA_INSTANCE_TYPE_LABEL, INSTANCE_TYPE_LABEL]],
    [metadata.zone, [BETA_ZONE_LABEL, ZONE_LABEL]],
    [metadata.region, [BETA_REGION_LABEL, REGION_LABEL]],
  ];
  for (const [value, keys] of told) {
    if (value === '') continue;
    for (const key of keys) labels[key] = value;
  }
  return labels;
}

/**
 * The node's addresses as the provider has them, or undefined when nothing is to be written: the provider names none, or
 * the same set. The machine's own Hostname entries stay when the provider has none; an address given by annotation comes
 * first within its type.
 */
export function addressesToWrite(
  node: Pick<UninitialisedNode, 'addresses' | 'annotations'>,
  fromProvider: readonly NodeAddress[],
): NodeAddress[] | undefined {
  if (fromProvider.length === 0) return undefined;
  const ownHostnames = fromProvider.some(({ type }) => type === 'Hostname')
    ? []
    : node.addresses.filter(({ type }) => type === 'Hostname');
  const wanted = [...fromProvider, ...ownHostnames];
  const provided = providedIps(node.annotations);
  const isProvided = ({ address }: NodeAddress): boolean => provided.includes(address);
  const types = [...new Set(wanted.map(({ type }) => type))];
  const ordered = types.flatMap((type) => {
    const ofType = wanted.filter((entry) => entry.type === type);
    return [...ofType.filter(isProvided), ...ofType.filter((entry) => !isProvided(entry))];
  });
  // As sets: a provider that lists the same addresses in another order causes no write.
  const identity = ({ type, address }: NodeAddress): string => `${type} ${address}`;
  const before = node.addresses.map(identity).toSorted().join();
  return ordered.map(identity).toSorted().join() === before ? undefined : ordered;
}
