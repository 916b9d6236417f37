/**
 * ControllerRevisions: the templates that a DaemonSet or StatefulSet had. Pure.
 *
 * Equality of templates decides which revision is current; the hash is only part of a name. Sources:
 * pkg/controller/history/controller_history.go, pkg/controller/daemon/update.go (constructHistory),
 * pkg/controller/statefulset/stateful_set_control.go (getStatefulSetRevisions, truncateHistory).
 */
import { defined } from '../../shared/defined.ts';
import type { Container, KubeControllerRevision, KubeObject, PodTemplateSpec } from '../../shared/kinds/types.ts';
import { isSameTemplate, templateHash } from './template.rule.ts';

/** On the pods of a DaemonSet: the hash. On those of a StatefulSet: the name of the revision. */
export const REVISION_LABEL = 'controller-revision-hash';
/** The limit for a name without its hash. Source: controller_history.go (ControllerRevisionName). */
const NAME_PREFIX_MAX = 223;

export interface RevisionOwner {
  readonly object: KubeObject;
  readonly template: PodTemplateSpec | undefined;
  readonly collisionCount: number | undefined;
  /** Label of the revision that holds its hash. */
  readonly hashLabel: string;
}

export type RevisionStep =
  | { readonly kind: 'current'; readonly current: KubeControllerRevision }
  /** No revision has the template. */
  | { readonly kind: 'create'; readonly revision: KubeControllerRevision }
  /** An old template is current again: its revision becomes the highest. */
  | { readonly kind: 'renumber'; readonly previous: KubeControllerRevision; readonly revision: number };

export function nextRevisionStep(owner: RevisionOwner, revisions: readonly KubeControllerRevision[]): RevisionStep {
  const sorted = inOrder(revisions);
  const equal = sorted.filter((revision) => isSameTemplate(templateOf(revision), owner.template));
  const current = equal.at(-1);
  const highestOther = Math.max(0, ...sorted.filter((each) => !equal.includes(each)).map(numberOf));
  if (current === undefined) return { kind: 'create', revision: revisionOf(owner, highestOther + 1) };
  return numberOf(current) > highestOther
    ? { kind: 'current', current }
    : { kind: 'renumber', previous: current, revision: highestOther + 1 };
}

const numberOf = ({ revision = 0 }: KubeControllerRevision): number => revision;

/** By number, then by age and name. */
export const inOrder = (revisions: readonly KubeControllerRevision[]): readonly KubeControllerRevision[] =>
  revisions.toSorted(
    (left, right) =>
      numberOf(left) - numberOf(right) ||
      compareText(left.metadata.creationTimestamp, right.metadata.creationTimestamp) ||
      compareText(left.metadata.name, right.metadata.name),
  );

function compareText(left: string | null | undefined, right: string | null | undefined): number {
  return (left ?? '') === (right ?? '') ? 0 : (left ?? '') < (right ?? '') ? -1 : 1;
}

function revisionOf(owner: RevisionOwner, number: number): KubeControllerRevision {
  const { object, template = {}, hashLabel } = owner;
  const hash = templateHash(template, owner.collisionCount);
  const { annotations } = object.metadata;
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${(object.metadata.name ?? '').slice(0, NAME_PREFIX_MAX)}-${hash}`,
      namespace: object.metadata.namespace ?? '',
      labels: { ...template.metadata?.labels, [hashLabel]: hash },
      ...(annotations === undefined ? {} : { annotations }),
    },
    // `kubectl rollout undo` sends it as a strategic merge patch.
    data: { spec: { template: inGoForm(template) } },
    revision: number,
  };
}

/**
 * The template as Go writes it: members in the order of their names, and those that it never leaves out. Clients that
 * compare a revision with its owner compare bytes (pkg/controller/daemon/update.go, Match).
 */
function inGoForm(template: PodTemplateSpec): Record<string, unknown> {
  const withResources = (containers: readonly Container[] | undefined) =>
    containers?.map((container) => ({ resources: {}, ...container }));
  const spec = template.spec ?? {};
  return sortedMembers({
    ...template,
    $patch: 'replace',
    metadata: { creationTimestamp: null, ...template.metadata },
    spec: {
      ...spec,
      ...defined({
        containers: withResources(spec.containers),
        initContainers: withResources(spec.initContainers),
      }),
    },
  }) as Record<string, unknown>;
}

function sortedMembers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedMembers);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sortedMembers(member)]));
}

/** The template that a revision holds. */
export function templateOf({ data }: KubeControllerRevision): PodTemplateSpec {
  const { template = {} } = (data as { spec?: { template?: PodTemplateSpec & { $patch?: string } } })?.spec ?? {};
  const { $patch: _patch, ...rest } = template;
  const { creationTimestamp = null, ...metadata } = rest.metadata ?? {};
  return creationTimestamp === null && rest.metadata !== undefined ? { ...rest, metadata } : rest;
}

/** Hash of a revision. One without the label, from elsewhere, has its name instead. */
export const hashOf = ({ metadata }: KubeControllerRevision, hashLabel: string): string =>
  metadata.labels?.[hashLabel] ?? metadata.name ?? '';

/**
 * The revisions that exceed the limit, the oldest first.
 *
 * `isLive`: a pod or the owner needs the revision. Live ones do not count for a StatefulSet; for a DaemonSet they do,
 * but stay.
 */
export function surplusRevisions(
  old: readonly KubeControllerRevision[],
  limit: number,
  isLive: (revision: KubeControllerRevision) => boolean,
  countsLive: boolean,
): readonly KubeControllerRevision[] {
  const free = inOrder(old).filter((each) => !isLive(each));
  const count = (countsLive ? old.length : free.length) - limit;
  return count <= 0 ? [] : free.slice(0, count);
}
