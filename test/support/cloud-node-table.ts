/** The truth table of decideCloud, for documents and tests: every combination that the rule distinguishes. */

import type { CloudAnswer } from '../../shared/fleet/instances/instance.ts';
import {
  type CloudDecision,
  type CloudMemory,
  type CloudPolicy,
  decideCloud,
} from '../../shared/fleet/instances/rule.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';

export interface CloudTableRow {
  readonly ready: ConditionStatus;
  readonly answer: string;
  readonly shutdownTaint: boolean;
  readonly first: CloudDecision;
  /** The same answer again, one period later. */
  readonly second: CloudDecision;
}

interface NamedAnswer {
  readonly name: string;
  readonly answer: CloudAnswer;
  /** Seconds since launch (or creation of the Node) at the first answer. */
  readonly ageSeconds: 'young' | 'old';
}

const found = (state: Extract<CloudAnswer, { kind: 'found' }>['state']): NamedAnswer => ({
  name: state,
  answer: { kind: 'found', state, launchedAtMs: 0 },
  ageSeconds: 'old',
});

const NAMED_ANSWERS: readonly NamedAnswer[] = [
  found('pending'),
  found('running'),
  found('stopping'),
  found('stopped'),
  found('shutting-down'),
  found('terminated'),
  { name: 'vanished, young', answer: { kind: 'notFound' }, ageSeconds: 'young' },
  { name: 'vanished, old', answer: { kind: 'notFound' }, ageSeconds: 'old' },
  { name: 'error', answer: { kind: 'failed', cause: 'error', message: 'InternalError' }, ageSeconds: 'old' },
  { name: 'timeout', answer: { kind: 'failed', cause: 'timeout', message: 'no answer' }, ageSeconds: 'old' },
  {
    name: 'throttled',
    answer: { kind: 'failed', cause: 'throttled', message: 'RequestLimitExceeded' },
    ageSeconds: 'old',
  },
  { name: 'foreign account or region', answer: { kind: 'foreign', reason: 'not ours to see' }, ageSeconds: 'old' },
  { name: 'no EC2 instance', answer: { kind: 'notEc2', reason: 'node has no providerID' }, ageSeconds: 'old' },
];

const READY: readonly ConditionStatus[] = ['True', 'False', 'Unknown'];

/** Every row: readiness, answer, with and without the shutdown taint. */
export function cloudTable(policy: CloudPolicy): CloudTableRow[] {
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const youngMs = policy.cloudYoungInstanceSeconds * 1_000;
  return READY.flatMap((ready) =>
    NAMED_ANSWERS.flatMap(({ name, answer, ageSeconds }) =>
      [false, true].map((shutdownTaint) => {
        // A young instance is still young at the second answer.
        const firstAtMs = ageSeconds === 'young' ? Math.max(0, youngMs - periodMs) : youngMs + 1;
        const ask = (memory: CloudMemory, atMs: number) =>
          decideCloud(
            { nodeName: 'n', ready, answer, memory, createdAtMs: 0, hasShutdownTaint: shutdownTaint },
            atMs,
            policy,
          );
        const first = ask({}, firstAtMs);
        const second = ask(first.memory, firstAtMs + periodMs);
        return { ready, answer: name, shutdownTaint, first: first.decision, second: second.decision };
      }),
    ),
  );
}

/** The table as Markdown. Combinations with the same outcome are one row. */
export function renderCloudTable(policy: CloudPolicy): string {
  const cell = ({ kind, reason }: CloudDecision): string => `${kind}: ${reason}`;
  const unique = (values: readonly string[]): string[] => [...new Set(values)];
  const byAnswer = Map.groupBy(cloudTable(policy), ({ answer, shutdownTaint, first, second }) =>
    JSON.stringify([answer, shutdownTaint, cell(first), cell(second)]),
  );
  const byReadiness = Map.groupBy(byAnswer.values(), (rows) => {
    const { shutdownTaint, first, second } = rows[0]!;
    return JSON.stringify([rows.map(({ ready }) => ready), shutdownTaint, cell(first), cell(second)]);
  });
  const byTaint = Map.groupBy(byReadiness.values(), (groups) => {
    const { first, second } = groups[0]![0]!;
    const names = groups.map((rows) => rows[0]!.answer);
    return JSON.stringify([groups[0]!.map(({ ready }) => ready), names, cell(first), cell(second)]);
  });
  const lines = [...byTaint.values()].map((combinations) => {
    const rows = combinations.flat(2);
    const { first, second } = rows[0]!;
    const answers = unique(rows.map(({ answer }) => answer));
    const answer = answers.length === NAMED_ANSWERS.length ? 'any' : answers.join('; ');
    const taint = unique(rows.map(({ shutdownTaint }) => (shutdownTaint ? 'yes' : 'no'))).join(' or ');
    const later = cell(second) === cell(first) ? 'the same' : cell(second);
    return `| ${unique(rows.map(({ ready }) => ready)).join(' or ')} | ${answer} | ${taint} | ${cell(first)} | ${later} |`;
  });
  return [
    '| Ready | answer of EC2 | shutdown taint | first answer | the same answer one period later |',
    '| --- | --- | --- | --- | --- |',
    ...lines,
    '',
  ].join('\n');
}
