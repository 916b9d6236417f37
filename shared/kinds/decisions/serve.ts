/** The decisions of the controllers with their reasons, read-only (docs/explain.md). */

import type { DecisionRecord } from '../../decisions/decision-record.ts';
import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import { formatMicroTime, formatTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { READ_ONLY } from '../read-only.ts';
import type { KubeDecision, KubeObject } from '../types.ts';
import { DECISIONS, nameIfAbout } from './resource.ts';

function aboutCell(object: KubeDecision): string {
  const { kind = '', namespace } = object.spec?.about ?? {};
  if (kind === 'Fleet') return 'fleet';
  const own = nameIfAbout(kind)(object);
  const name = namespace === undefined || kind === 'Pod' ? own : `${namespace}/${own}`;
  return kind === 'Zone' && name === '' ? 'nodes without a zone' : `${kind.toLowerCase()}/${name}`;
}

const atMsOf = ({ spec }: KubeDecision): number => Number(spec?.['atMs'] ?? 0);

/** The longest reason in a line of 120 columns. Characters. */
const REASON_LENGTH_MAX = 72;

const shortReason = (reason: string): string =>
  reason.length <= REASON_LENGTH_MAX ? reason : `${reason.slice(0, REASON_LENGTH_MAX - 1).trimEnd()}…`;

export const decisions: ResourceDescriptor = {
  ...DECISIONS,
  singular: 'decision',
  listKind: 'DecisionList',
  shortNames: [],
  categories: [],
  subresources: [],
  columns: [
    { ...ageColumn, description: 'Time since it was decided.' },
    textColumn('About', 'What it is about.'),
    textColumn('Act', 'What was done, or not done.'),
    textColumn('Reason', 'Why, shortened.'),
    textColumn('Full reason', 'Why.', 1),
    textColumn('Rule', 'The rule that decided.', 1),
    textColumn('Policy', 'Hash of the policy it was decided by.', 1),
    { ...nameColumn, priority: 1 },
  ],
  row: (object: KubeDecision, nowMs) => [
    ageSince(object.metadata.creationTimestamp, nowMs),
    aboutCell(object),
    object.spec?.act ?? '',
    shortReason(object.spec?.reason ?? ''),
    object.spec?.reason ?? '',
    object.spec?.rule ?? '',
    object.spec?.policy ?? '',
    object.metadata.name ?? '',
  ],
  compareRows: (one, other) => atMsOf(one) - atMsOf(other),
  ...READ_ONLY,
};

/** The API object of a record. `version`: a number that grows with time. */
export function decisionObject(name: string, record: DecisionRecord, version: number, uid: string): KubeObject {
  const { v, act, about, atMs, ...rest } = record;
  return {
    apiVersion: apiVersionOf(DECISIONS),
    kind: decisions.kind,
    metadata: { name, uid, resourceVersion: String(version), creationTimestamp: formatTime(atMs) },
    spec: { v, act, about, at: formatMicroTime(atMs), atMs, ...rest },
  };
}
