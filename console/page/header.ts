/** What an on-call person looks at first: is the data live, is the gate open, how many nodes are Ready. */
import { h, type JSX } from 'preact';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { sampleValue } from '../model/metrics-text.ts';
import { podKeyOf } from '../model/pods.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Age, Fact, useNowMs } from './elements.ts';

/** Ticks run every 5 s. Seconds. */
const TICK_LATE_MS = 30_000;

const GATE_REASONS: Readonly<Record<string, string>> = {
  missedTicks: 'ticks of node-monitor are missing',
  failingPath: 'our own heartbeats fail',
};

export const Header = ({ view }: { readonly view: ClusterView }): JSX.Element =>
  h(
    'header',
    null,
    h('h1', null, 'Nodekeeper ', h('span', { class: 'cluster' }, view.cluster)),
    h('p', { class: 'endpoint' }, view.endpoint),
    h(Gate, { view }),
    h('dl', { class: 'facts' }, h(NodeCounts, { view }), h(Ticks, { view }), h(Probes, { view }), h(Pending, { view })),
    h(Problems, { view }),
  );

function Gate({ view: { status } }: { readonly view: ClusterView }): JSX.Element {
  const gate = status?.gate;
  const sinceMs = parseTimeMs(gate?.since);
  const since = sinceMs === undefined ? [] : [' for ', h(Age, { sinceMs })];
  const total = status?.totalDisruption === true;
  const isClosed = gate?.state === 'Closed';
  const reasons = (gate?.reasons ?? []).map((reason) => GATE_REASONS[reason] ?? reason).join(', ');
  return h(
    'div',
    { role: 'status', class: 'states' },
    gate === undefined
      ? h('p', { class: 'state' }, 'Gate: not known yet')
      : isClosed
        ? h('p', { class: 'state bad' }, '✕ Gate closed', ...since, `: ${reasons}. No node is marked or evicted.`)
        : h('p', { class: 'state good' }, '✓ Gate open'),
    total ? h('p', { class: 'state bad' }, '✕ Total disruption: no zone has a Ready node. No pod is evicted.') : null,
  );
}

function NodeCounts({ view: { nodes, isListed } }: { readonly view: ClusterView }): JSX.Element {
  let ready = 0;
  let planned = 0;
  for (const { state, plannedSilence } of nodes.values()) {
    if (plannedSilence !== undefined) planned += 1;
    else if (state === 'Ready') ready += 1;
  }
  const plannedText = planned === 0 ? '' : `, ${planned} in planned silence`;
  return h(Fact, { name: 'Nodes Ready' }, `${ready} of ${nodes.size}${plannedText}${isListed ? '' : ' …'}`);
}

function Ticks({ view: { status } }: { readonly view: ClusterView }): JSX.Element {
  const nowMs = useNowMs();
  const lastMs = parseTimeMs(status?.lastTickTime);
  if (lastMs === undefined) return h(Fact, { name: 'Last tick' }, status === undefined ? '…' : 'none yet');
  const isLate = nowMs - lastMs > TICK_LATE_MS;
  return h(
    Fact,
    { name: 'Last tick' },
    h('span', { class: isLate ? 'warn' : '' }, h(Age, { sinceMs: lastMs }), ' ago', isLate ? ' (late)' : ''),
  );
}

/** Probes of the last two heartbeat intervals: what the gate rests on. */
function Probes({ view: { metrics } }: { readonly view: ClusterView }): JSX.Element {
  const accepted = sampleValue(metrics, 'nodekeeper_probes', { result: 'accepted' });
  const failed = sampleValue(metrics, 'nodekeeper_probes', { result: 'failed' });
  if (accepted === undefined || failed === undefined) return h(Fact, { name: 'Own heartbeats' }, '…');
  const text = accepted + failed === 0 ? 'none yet' : `${accepted} of ${accepted + failed} accepted`;
  return h(Fact, { name: 'Own heartbeats' }, h('span', { class: failed > 0 ? 'warn' : '' }, text));
}

function Pending({ view: { oldestPendingPod: pod } }: { readonly view: ClusterView }): JSX.Element {
  if (pod === undefined) return h(Fact, { name: 'Oldest pending pod' }, 'none');
  return h(
    Fact,
    { name: 'Oldest pending pod' },
    h('a', { href: '#/pods' }, podKeyOf(pod)),
    ', ',
    h(Age, { sinceMs: pod.createdAtMs }),
  );
}

function Problems({ view: { problems } }: { readonly view: ClusterView }): JSX.Element {
  const nowMs = useNowMs();
  return h(
    'div',
    { role: 'status', class: 'problems' },
    ...[...problems].map(([source, { message, sinceMs }]) =>
      h('p', { class: 'stale', key: source }, `⚠ ${source}: stale for ${formatAge(nowMs - sinceMs)}. ${message}`),
    ),
  );
}
