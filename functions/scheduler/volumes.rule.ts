/**
 * VolumeBinding, VolumeZone and VolumeRestrictions: on which nodes the volumes of a pod are, or can be made. Pure.
 *
 * Source: pkg/scheduler/framework/plugins/volumebinding/{volume_binding,binder}.go, volumezone/volume_zone.go,
 * volumerestrictions/volume_restrictions.go.
 */
import {
  BOUND_BY_CONTROLLER,
  NO_PROVISIONER,
  SELECTED_NODE,
} from '../../shared/kinds/persistentvolumes/annotations.ts';
import {
  classNameOf,
  isFullyBound,
  nodeTermsOf,
  requestOf,
  selectedNodeOf,
  volumesFor,
  waitsForConsumer,
} from '../../shared/kinds/persistentvolumes/binding.rule.ts';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../../shared/kinds/types.ts';
import type { Filter, PluginName, Rejection } from '../../shared/scheduling/filter.rule.ts';
import { nodeTermMatches } from '../../shared/scheduling/node-match.rule.ts';
import type { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { countsOnNode, type SchedulableNode, type SchedulablePod } from '../../shared/scheduling/world.rule.ts';

/** Claims by `namespace/name`, volumes and classes by name. */
export interface StoredVolumes {
  readonly claims: ReadonlyMap<string, KubePersistentVolumeClaim>;
  readonly volumes: ReadonlyMap<string, KubePersistentVolume>;
  readonly classes: ReadonlyMap<string, KubeStorageClass>;
}

/** What must be written before a pod is bound to a node: a volume is claimed, or a node is selected. */
export type ClaimStep =
  | { readonly kind: 'claimVolume'; readonly previous: KubePersistentVolume; readonly next: KubePersistentVolume }
  | {
      readonly kind: 'selectNode';
      readonly previous: KubePersistentVolumeClaim;
      readonly next: KubePersistentVolumeClaim;
    }
  /** The node is selected already, and its volume is being made. */
  | { readonly kind: 'wait'; readonly claim: KubePersistentVolumeClaim };

export interface PodVolumes {
  /** Why no node can have them. */
  readonly rejection?: { readonly plugin: PluginName; readonly text: string };
  readonly filter: Filter;
  /** Claims that the pod is bound with, as read. */
  readonly claims: readonly KubePersistentVolumeClaim[];
  /** For a node that passed the filter. Empty: all claims are bound. */
  stepsOn(node: SchedulableNode): readonly ClaimStep[];
}

const rejected = (plugin: PluginName, reason: string, isResolvable = false): Rejection => ({
  plugin,
  reasons: [reason],
  isResolvable,
});
const AFFINITY_CONFLICT = rejected('VolumeBinding', 'node(s) had volume node affinity conflict');
const NOTHING_TO_BIND = rejected('VolumeBinding', "node(s) didn't find available persistent volumes to bind");
const VOLUME_MISSING = rejected(
  'VolumeBinding',
  'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
);
const ZONE_CONFLICT = rejected('VolumeZone', 'node(s) had no available volume zone');
const USED_BY_OTHER = rejected(
  'VolumeRestrictions',
  'node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
  true,
);

const ZONE_LABELS = [
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
];
/** A label of a volume in several zones has them all: `a__b`. */
const ZONE_SEPARATOR = '__';

export function volumesOfPod(pod: SchedulablePod, stored: StoredVolumes, snapshot: Snapshot): PodVolumes {
  const claims: KubePersistentVolumeClaim[] = [];
  for (const name of pod.claims) {
    const found = stored.claims.get(`${pod.namespace}/${name}`);
    const text = claimRejection(name, found);
    if (text !== undefined) return refused(text);
    claims.push(found!);
  }
  const isBound = (claim: KubePersistentVolumeClaim): boolean => isFullyBound(claim);
  const unbound = claims.filter((claim) => !isBound(claim));
  const storageOf = (claim: KubePersistentVolumeClaim) => stored.classes.get(classNameOf(claim));
  const isImmediate = (claim: KubePersistentVolumeClaim): boolean =>
    (claim.spec?.volumeName ?? '') !== '' || !waitsForConsumer(storageOf(claim));
  if (unbound.some(isImmediate)) return refused('pod has unbound immediate PersistentVolumeClaims');
  const bound = claims.filter(isBound).map(({ spec }) => stored.volumes.get(spec?.volumeName ?? ''));
  // The smallest request first: a large one must not get the only volume for a small one.
  const ordered = unbound.toSorted((one, other) => (requestOf(one) < requestOf(other) ? -1 : 1));
  const isTaken = isUsedByOther(pod, claims, snapshot);
  const wanted = ordered.map((claim) => ({
    claim,
    storage: storageOf(claim),
    // With a selected node its volume is being made there, or is bound already.
    candidates: byNode(selectedNodeOf(claim) === '' ? volumesFor(claim, stored.volumes.values()) : []),
  }));
  const stepsOn = (node: SchedulableNode) => stepsFor(node, wanted);
  return {
    claims,
    filter: ({ node }) => {
      if (isTaken) return USED_BY_OTHER;
      for (const volume of bound) {
        if (volume === undefined) return VOLUME_MISSING;
        if (!reaches(volume, node)) return AFFINITY_CONFLICT;
      }
      if (stepsOn(node) === undefined) return NOTHING_TO_BIND;
      return bound.every((volume) => volume === undefined || isInZone(volume, node)) ? undefined : ZONE_CONFLICT;
    },
    stepsOn: (node) => stepsOn(node) ?? [],
  };
}

function refused(text: string): PodVolumes {
  const plugin = 'VolumeBinding';
  return { rejection: { plugin, text }, filter: () => undefined, claims: [], stepsOn: () => [] };
}

function claimRejection(name: string, claim: KubePersistentVolumeClaim | undefined): string | undefined {
  const named = `persistentvolumeclaim ${JSON.stringify(name)}`;
  if (claim === undefined) return `${named} not found`;
  if (claim.status?.phase === 'Lost') {
    return `${named} bound to non-existent persistentvolume ${JSON.stringify(claim.spec?.volumeName ?? '')}`;
  }
  return claim.metadata.deletionTimestamp === undefined ? undefined : `${named} is being deleted`;
}

const reaches = (volume: KubePersistentVolume, node: SchedulableNode): boolean =>
  nodeTermsOf(volume)?.some((term) => nodeTermMatches(term, node)) ?? true;

/** A node without any of the labels is in no zone that could differ. */
function isInZone({ metadata }: KubePersistentVolume, { labels }: SchedulableNode): boolean {
  if (!ZONE_LABELS.some((key) => labels[key] !== undefined)) return true;
  return ZONE_LABELS.every((key) => {
    const zones = metadata.labels?.[key];
    return zones === undefined || zones.split(ZONE_SEPARATOR).includes(labels[key] ?? '');
  });
}

interface WantedVolume {
  readonly claim: KubePersistentVolumeClaim;
  readonly storage: KubeStorageClass | undefined;
  readonly candidates: Candidates;
}

interface Candidate {
  readonly volume: KubePersistentVolume;
  /** In the order of preference. */
  readonly place: number;
}

/** A fleet has a volume per machine: each node examines its own, and those that name no node. */
interface Candidates {
  /** By the key of a node that the volume names. */
  readonly ofNodes: ReadonlyMap<string, readonly Candidate[]>;
  readonly others: readonly Candidate[];
}

const HOST_LABEL = 'kubernetes.io/hostname';
const keyOfHost = (host: string): string => `host/${host}`;
const keyOfName = (name: string): string => `name/${name}`;

function byNode(volumes: readonly KubePersistentVolume[]): Candidates {
  const ofNodes = new Map<string, Candidate[]>();
  const others: Candidate[] = [];
  for (const [place, volume] of volumes.entries()) {
    const keys = nodeKeysOf(volume);
    if (keys === undefined) others.push({ volume, place });
    for (const key of new Set(keys)) {
      const known = ofNodes.get(key);
      if (known === undefined) ofNodes.set(key, [{ volume, place }]);
      else known.push({ volume, place });
    }
  }
  return { ofNodes, others };
}

/** Keys of the nodes that reach the volume; undefined: a term names none. */
function nodeKeysOf(volume: KubePersistentVolume): readonly string[] | undefined {
  const keys: string[] = [];
  for (const { matchExpressions = [], matchFields = [] } of nodeTermsOf(volume) ?? [{}]) {
    const host = matchExpressions.find(({ key, operator }) => key === HOST_LABEL && operator === 'In');
    const name = matchFields.find(({ key, operator }) => key === 'metadata.name' && operator === 'In');
    if (host === undefined && name === undefined) return undefined;
    keys.push(...(host?.values?.map(keyOfHost) ?? name?.values?.map(keyOfName) ?? []));
  }
  return keys;
}

function bestOn(
  node: SchedulableNode,
  { ofNodes, others }: Candidates,
  excluded: ReadonlySet<string>,
): KubePersistentVolume | undefined {
  const keys = [keyOfHost(node.labels[HOST_LABEL] ?? ''), keyOfName(node.name)];
  let best: Candidate | undefined;
  for (const candidates of [...keys.map((key) => ofNodes.get(key) ?? []), others]) {
    const found = candidates.find(({ volume }) => !excluded.has(volume.metadata.name ?? '') && reaches(volume, node));
    if (found !== undefined && (best === undefined || found.place < best.place)) best = found;
  }
  return best?.volume;
}

/** Undefined: the node has no volume for one of the claims, and none can be made there. */
function stepsFor(node: SchedulableNode, wanted: readonly WantedVolume[]): readonly ClaimStep[] | undefined {
  const excluded = new Set<string>();
  const steps: ClaimStep[] = [];
  for (const { claim, storage, candidates } of wanted) {
    const selected = selectedNodeOf(claim);
    if (selected !== '' && selected !== node.name) return undefined;
    const match = bestOn(node, candidates, excluded);
    if (match !== undefined) {
      excluded.add(match.metadata.name ?? '');
      steps.push({ kind: 'claimVolume', previous: match, next: claimedFor(match, claim) });
      continue;
    }
    if (!canProvision(storage, node)) return undefined;
    steps.push(
      selected === ''
        ? { kind: 'selectNode', previous: claim, next: selectedFor(claim, node) }
        : { kind: 'wait', claim },
    );
  }
  return steps;
}

function canProvision(storage: KubeStorageClass | undefined, { labels }: SchedulableNode): boolean {
  const { provisioner = '', allowedTopologies = [] } = storage ?? {};
  if (provisioner === '' || provisioner === NO_PROVISIONER) return false;
  if (allowedTopologies.length === 0) return true;
  return allowedTopologies.some(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions.every(({ key = '', values = [] }) => values.includes(labels[key] ?? '')),
  );
}

function claimedFor(volume: KubePersistentVolume, { metadata }: KubePersistentVolumeClaim): KubePersistentVolume {
  if (volume.spec?.claimRef?.uid === metadata.uid) return volume;
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
  const claimRef = { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1', resourceVersion };
  const byUs = volume.spec?.claimRef === undefined ? { [BOUND_BY_CONTROLLER]: 'yes' } : {};
  const annotations = { ...volume.metadata.annotations, ...byUs };
  return { ...volume, metadata: { ...volume.metadata, annotations }, spec: { ...volume.spec, claimRef } };
}

const selectedFor = (claim: KubePersistentVolumeClaim, { name }: SchedulableNode): KubePersistentVolumeClaim => ({
  ...claim,
  metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, [SELECTED_NODE]: name } },
});

/** A claim for one pod alone is in use. All pods are examined, only for such a claim. */
function isUsedByOther(pod: SchedulablePod, claims: readonly KubePersistentVolumeClaim[], { pods }: Snapshot): boolean {
  const alone = new Set(
    claims
      .filter(({ spec }) => (spec?.accessModes ?? []).includes('ReadWriteOncePod'))
      .map(({ metadata }) => metadata.name ?? ''),
  );
  if (alone.size === 0) return false;
  for (const other of pods.values()) {
    if (other.uid === pod.uid || other.namespace !== pod.namespace || !countsOnNode(other)) continue;
    if (other.claims.some((name) => alone.has(name))) return true;
  }
  return false;
}
