/** The decisions of the controllers with their reasons, read-only (docs/explain.md). */
import type { DecisionRecord } from '../../decisions/decision-record.ts';
import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { formatMicroTime, formatTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { READ_ONLY } from '../read-only.ts';
import { IDENTITY_GROUP } from '../schema/identity.ts';
import type { KubeDecision, KubeObject } from '../types.ts';

const VERSION = 'v1alpha1';

const aboutOf = (object: KubeDecision) => object.spec?.about ?? {};
const aboutField =
  (field: 'kind' | 'namespace' | 'name' | 'uid') =>
  (object: KubeDecision): string =>
    aboutOf(object)[field] ?? '';

/** The name of the subject, `namespace/name` for a pod. '' when the subject has another kind. */
const nameIfAbout =
  (kind: string) =>
  (object: KubeDecision): string => {
    const { kind: aboutKind, namespace = '', name = '' } = aboutOf(object);
    if (aboutKind !== kind) return '';
    return kind === 'Pod' ? `${namespace}/${name}` : name;
  };

function aboutCell(object: KubeDecision): string {
  const { kind = '' } = aboutOf(object);
  return kind === 'Fleet' ? 'fleet' : `${kind.toLowerCase()}/${nameIfAbout(kind)(object)}`;
}

export const decisions: ResourceDescriptor = {
  group: IDENTITY_GROUP,
  version: VERSION,
  resource: 'decisions',
  singular: 'decision',
  kind: 'Decision',
  listKind: 'DecisionList',
  shortNames: [],
  categories: [],
  namespaced: false,
  // No client may write, not even system:masters: there is no verb for it.
  verbs: ['get', 'list', 'watch'],
  subresources: [],
  shards: 1,
  columns: [
    { ...ageColumn, description: 'Time since it was decided.' },
    textColumn('About', 'What it is about.'),
    textColumn('Act', 'What was done, or not done.'),
    textColumn('Reason', 'Why.'),
    textColumn('Rule', 'The rule that decided.', 1),
    textColumn('Policy', 'Hash of the policy it was decided by.', 1),
    { ...nameColumn, priority: 1 },
  ],
  row: (object: KubeDecision, nowMs) => [
    ageSince(object.metadata.creationTimestamp, nowMs),
    aboutCell(object),
    object.spec?.act ?? '',
    object.spec?.reason ?? '',
    object.spec?.rule ?? '',
    object.spec?.policy ?? '',
    object.metadata.name ?? '',
  ],
  selectableFields: {
    'metadata.name': (object) => object.metadata.name ?? '',
    act: (object: KubeDecision) => object.spec?.act ?? '',
    node: nameIfAbout('Node'),
    pod: nameIfAbout('Pod'),
    zone: nameIfAbout('Zone'),
    'about.kind': aboutField('kind'),
    'about.namespace': aboutField('namespace'),
    'about.name': aboutField('name'),
    'about.uid': aboutField('uid'),
  },
  ...READ_ONLY,
};

/** The API object of a record. `version`: a number that grows with time. */
export function decisionObject(name: string, record: DecisionRecord, version: number, uid: string): KubeObject {
  const { v, act, about, atMs, ...rest } = record;
  return {
    apiVersion: `${IDENTITY_GROUP}/${VERSION}`,
    kind: decisions.kind,
    metadata: { name, uid, resourceVersion: String(version), creationTimestamp: formatTime(atMs) },
    spec: { v, act, about, at: formatMicroTime(atMs), atMs, ...rest },
  };
}
