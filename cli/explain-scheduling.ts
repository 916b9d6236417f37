/** Details of the scheduler's decisions, below their line: why this node, and why not the others. */

import type { Shortage } from '../functions/scheduler/decisions.ts';
import { totalOf, weightedScores } from '../functions/scheduler/rule.ts';
import { formatAge } from '../shared/kubernetes/age.ts';
import type { KnownDecision } from './replay.ts';

const MEBIBYTE = 1_024 * 1_024;
const BYTES = new Set(['memory', 'ephemeral-storage']);

export function schedulingDetails(decision: KnownDecision | undefined): string[] {
  switch (decision?.rule) {
    case 'podPlacement': {
      const { nodes, examined, best, rejected } = decision.inputs;
      return [
        ...waitDetails(decision.inputs),
        ...best.map(scoreDetails),
        ...countDetails('rejected', rejected),
        ...(nodes > examined ? [`not examined: ${count(nodes - examined, 'node')}, or not named by the pod`] : []),
      ];
    }
    case 'podRejection': {
      const { examples, rejected, shortages = [] } = decision.inputs;
      return [
        ...waitDetails(decision.inputs),
        ...Object.entries(rejected).map(([reason, nodes]) => {
          const names = examples[reason] ?? [];
          const which = nodes > names.length ? `, for example ${names.join(', ')}` : `: ${names.join(', ')}`;
          return `${reason}: ${count(nodes, 'node')}${names.length === 0 ? '' : which}`;
        }),
        ...shortages.map(shortageDetails),
      ];
    }
    default:
      return [];
  }
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

function waitDetails({ waitedMs, attempt }: { readonly waitedMs?: number; readonly attempt?: number }): string[] {
  return waitedMs === undefined ? [] : [`attempt ${attempt}, ${formatAge(waitedMs)} after the pod entered the queue`];
}

type Best = Extract<KnownDecision, { readonly rule: 'podPlacement' }>['inputs']['best'][number];

/** `n1 650 = TaintToleration 3×100 + …`: weights and scores of 0 to 100. */
function scoreDetails({ nodeName, scores }: Best): string {
  const parts = weightedScores(scores).map(({ plugin, weight, score }) => `${plugin} ${weight}×${score}`);
  return `${nodeName} ${totalOf(scores)} = ${parts.join(' + ')}`;
}

function countDetails(title: string, counts: Readonly<Record<string, number>>): string[] {
  const parts = Object.entries(counts).map(([reason, nodes]) => `${nodes} ${reason}`);
  return parts.length === 0 ? [] : [`${title}: ${parts.join(', ')}`];
}

function amountText(resource: string, amount: number): string {
  if (resource === 'cpu') return amount % 1_000 === 0 ? String(amount / 1_000) : `${amount}m`;
  if (!BYTES.has(resource) && !resource.startsWith('hugepages-')) return String(amount);
  return `${Math.round(amount / MEBIBYTE)}Mi`;
}

function shortageDetails({ name, requested, allocatable, used, nodeName }: Shortage): string {
  const text = (amount: number): string => amountText(name, amount);
  return `${name}: ${text(requested)} requested; most is free on ${nodeName}: ${text(Math.max(0, allocatable - used))} of ${text(allocatable)}`;
}
