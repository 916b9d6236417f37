/**
 * The claims of the pods of a StatefulSet: names, volumes and owners. Pure.
 * Source: pkg/controller/statefulset/stateful_set_utils.go (getPersistentVolumeClaims, updateStorage,
 * updateClaimOwnerRefForSetAndPod).
 */
import type {
  KubePersistentVolumeClaim,
  KubePod,
  OwnerReference,
  PodTemplateSpec,
  Volume,
} from '../../../shared/kinds/types.ts';
import type { KubeStatefulSet } from '../workload-types.ts';
import { podNameOf } from './identity.rule.ts';

export const claimNameOf = (templateName: string, setName: string, ordinal: number): string =>
  `${templateName}-${podNameOf(setName, ordinal)}`;

/** Names of the claims of one pod. */
export const claimNamesFor = ({ metadata, spec }: KubeStatefulSet, ordinal: number): readonly string[] =>
  (spec?.volumeClaimTemplates ?? []).map((each) => claimNameOf(each.metadata.name ?? '', metadata.name ?? '', ordinal));

/** The claims of one pod, to be created. */
export function claimsFor(set: KubeStatefulSet, ordinal: number): readonly KubePersistentVolumeClaim[] {
  const names = claimNamesFor(set, ordinal);
  const owners = ownersOf(set, undefined);
  return (set.spec?.volumeClaimTemplates ?? []).map(({ metadata, spec }, index) => {
    const labels = {
      ...metadata.labels,
      ...(set.spec?.selector as { matchLabels?: Record<string, string> })?.matchLabels,
    };
    const { annotations } = metadata;
    return {
      metadata: {
        name: names[index]!,
        namespace: set.metadata.namespace ?? '',
        labels,
        ...(annotations === undefined ? {} : { annotations }),
        ...(owners.length === 0 ? {} : { ownerReferences: [...owners] }),
      },
      spec: spec ?? {},
    };
  });
}

/** The template of one pod with the volumes of its claims. They replace volumes of the same name. */
export function withClaims(template: PodTemplateSpec, set: KubeStatefulSet, ordinal: number): PodTemplateSpec {
  const templates = set.spec?.volumeClaimTemplates ?? [];
  if (templates.length === 0) return template;
  const names = claimNamesFor(set, ordinal);
  const volumes = templates.map(
    ({ metadata }, index): Volume => ({
      name: metadata.name ?? '',
      persistentVolumeClaim: { claimName: names[index]! },
    }),
  );
  const claimed = new Set(volumes.map(({ name }) => name));
  const others = (template.spec?.volumes ?? []).filter(({ name }) => !claimed.has(name));
  return { ...template, spec: { ...template.spec, volumes: [...volumes, ...others] } };
}

/** Owners that the controller sets: the set, or a pod that is scaled down. `condemned`: absent for one that stays. */
function ownersOf(set: KubeStatefulSet, condemned: KubePod | undefined): readonly OwnerReference[] {
  const { whenDeleted, whenScaled } = set.spec?.persistentVolumeClaimRetentionPolicy ?? {};
  const reference = (kind: string, apiVersion: string, { metadata }: KubeStatefulSet | KubePod): OwnerReference => ({
    apiVersion,
    kind,
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
  });
  if (condemned !== undefined && whenScaled === 'Delete') return [reference('Pod', 'v1', condemned)];
  return whenDeleted === 'Delete' ? [reference('StatefulSet', 'apps/v1', set)] : [];
}

/** The claim with the owners that the policy requires; undefined: it has them. Owners of others stay. */
export function withOwnersOf(
  claim: KubePersistentVolumeClaim,
  set: KubeStatefulSet,
  { pod, isCondemned }: { readonly pod: KubePod; readonly isCondemned: boolean },
): KubePersistentVolumeClaim | undefined {
  const before = claim.metadata.ownerReferences ?? [];
  const wanted = ownersOf(set, isCondemned ? pod : undefined);
  const isOurs = ({ kind, name }: OwnerReference): boolean =>
    (kind === 'StatefulSet' && name === set.metadata.name) || (kind === 'Pod' && name === pod.metadata.name);
  const has = (list: readonly OwnerReference[], one: OwnerReference): boolean =>
    list.some(({ uid }) => uid === one.uid);
  const ours = before.filter(isOurs);
  if (ours.length === wanted.length && wanted.every((each) => has(ours, each))) return undefined;
  const next = [...before.filter((each) => !isOurs(each)), ...wanted];
  const { ownerReferences: _before, ...metadata } = claim.metadata;
  return { ...claim, metadata: { ...metadata, ...(next.length === 0 ? {} : { ownerReferences: next }) } };
}
