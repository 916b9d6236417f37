/** Decisions of the controllers (docs/explain.md). */
import { h, type JSX } from 'preact';
import type { DecisionRecord } from '../../shared/decisions/decision-record.ts';
import { nodeLink, Time } from './elements.ts';
import { readPages } from './requests.ts';

export interface NamedDecision {
  readonly name: string;
  readonly record: DecisionRecord;
}

interface DecisionObject {
  readonly metadata: { readonly name: string };
  readonly spec: DecisionRecord;
}

const DECISIONS_PATH = '/apis/nodekeeper.dev/v1alpha1/decisions';
const PAGES_MAX = 20;

/** The newest first. `selector`: '' reads those of all objects. */
export async function readDecisions(selector: string, sinceMs: number): Promise<readonly NamedDecision[]> {
  const found: NamedDecision[] = [];
  await readPages<DecisionObject>(DECISIONS_PATH, selector === '' ? {} : { fieldSelector: selector }, {
    pagesMax: PAGES_MAX,
    onPage: (items) => {
      for (const { metadata, spec } of items) {
        if (spec.atMs >= sinceMs) found.push({ name: metadata.name, record: spec });
      }
    },
  });
  return found.sort((one, other) => other.record.atMs - one.record.atMs);
}

/** Reading the decisions of more zones would be too many queries. */
const ZONES_MAX = 26;

/** Those about the whole cluster and about these zones, the newest first. */
export async function readClusterDecisions(
  zones: readonly string[],
  sinceMs: number,
): Promise<readonly NamedDecision[]> {
  const named = zones.filter((zone) => zone !== '').slice(0, ZONES_MAX);
  const selectors = ['about.kind=Fleet', ...named.map((zone) => `zone=${zone}`)];
  const found = await Promise.all(selectors.map((selector) => readDecisions(selector, sinceMs)));
  return found.flat().sort((one, other) => other.record.atMs - one.record.atMs);
}

function aboutOf({ about }: DecisionRecord): JSX.Element | string {
  if (about.kind === 'Node') return nodeLink(about.name);
  if (about.kind === 'Fleet') return 'cluster';
  const name = about.namespace === undefined ? about.name : `${about.namespace}/${about.name}`;
  return `${about.kind.toLowerCase()} ${name}`;
}

/** Rows of a table. The numbers of a decision open below its reason. */
export const decisionRows = (decisions: readonly NamedDecision[]): readonly (readonly (JSX.Element | string)[])[] =>
  decisions.map(({ name, record }) => [
    h(Time, { atMs: record.atMs }),
    aboutOf(record),
    record.act,
    h(
      'details',
      { key: name },
      h('summary', null, record.reason),
      h(
        'pre',
        null,
        JSON.stringify({ rule: record.rule, inputs: record.inputs, outcome: record.outcome }, undefined, 2),
      ),
    ),
  ]);

export const DECISION_COLUMNS: readonly string[] = ['Time', 'About', 'Decision', 'Reason'];

interface TimelineProps {
  readonly decisions: readonly NamedDecision[];
  readonly spanMs: number;
  readonly nowMs: number;
}

/** When decisions were made, the present at the right. The table below it has the same in words. */
export const Timeline = ({ decisions, spanMs, nowMs }: TimelineProps): JSX.Element =>
  h(
    'div',
    { class: 'timeline', role: 'img', 'aria-label': `${decisions.length} decisions` },
    decisions.map(({ name, record }) =>
      h('span', {
        key: name,
        title: `${new Date(record.atMs).toLocaleString()}: ${record.act}`,
        style: { left: `${Math.min(100, Math.max(0, 100 * (1 - (nowMs - record.atMs) / spanMs)))}%` },
      }),
    ),
  );
