/** One node: what it reports, and what was decided about it and why. */
import { h, type JSX } from 'preact';
import { useState } from 'preact/hooks';
import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import { FLAPPING_CONDITION } from '../../shared/fleet/silences/flapping.ts';
import type { KubeLease, KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { cellOf } from '../model/node-cell.ts';
import { podKeyOf, podSummaryOf } from '../model/pods.ts';
import type { PodSummary } from '../model/replacements.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import { DECISION_COLUMNS, decisionRows, type NamedDecision, readDecisions, Timeline } from './decisions.ts';
import { Age, Fact, Failure, Table, Time } from './elements.ts';
import { LEASES } from './heartbeats.ts';
import { NodeActions } from './node-actions.ts';
import { API, RequestError, readObject, readPages, readText } from './requests.ts';
import { usePoll } from './use-poll.ts';

const POLL_MS = 5_000;
const DECISIONS_MS = 86_400_000;
const POD_PAGES_MAX = 4;

/** Acts that record what EC2 answered. */
const CLOUD_ACTS: ReadonlySet<string> = new Set([
  'NodeKept',
  'NodeDeleted',
  'ShutdownTaintAdded',
  'ShutdownTaintRemoved',
  'OutOfServiceAdded',
  'OutOfServiceRemoved',
]);

interface NodeFacts {
  readonly node: KubeNode | undefined;
  readonly lease: KubeLease | undefined;
  readonly pods: readonly PodSummary[];
  readonly decisions: readonly NamedDecision[];
}

async function readNode(name: string): Promise<NodeFacts> {
  const pods: PodSummary[] = [];
  const [node, lease, decisions] = await Promise.all([
    ifPresent(readObject<KubeNode>(`${API}/api/v1/nodes/${name}`)),
    ifPresent(readObject<KubeLease>(`${API}${LEASES}/${name}`)),
    readDecisions(`node=${name}`, clusterClock.nowMs() - DECISIONS_MS),
    readPages<KubePod>(
      '/api/v1/pods',
      { fieldSelector: `spec.nodeName=${name}` },
      { pagesMax: POD_PAGES_MAX, onPage: (items) => pods.push(...items.map(podSummaryOf)) },
    ),
  ]);
  return { node, lease, pods, decisions };
}

async function ifPresent<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return undefined;
    throw error;
  }
}

export function NodeView({ name, view }: { readonly name: string; readonly view: ClusterView }): JSX.Element {
  const { value, failure } = usePoll(name, POLL_MS, () => readNode(name));
  return h(
    'section',
    { 'aria-labelledby': 'node-title' },
    h('h2', { id: 'node-title' }, 'Node ', name),
    h('p', null, h('a', { href: '#/now' }, '← Now')),
    h(Failure, { message: failure }),
    value === undefined
      ? h('p', { class: 'empty' }, failure === undefined ? 'The node is being read…' : '')
      : h(NodeParts, { name, view, facts: value }),
  );
}

interface PartsProps {
  readonly name: string;
  readonly view: ClusterView;
  readonly facts: NodeFacts;
}

const NodeParts = ({ name, view, facts }: PartsProps): JSX.Element =>
  h(
    'div',
    null,
    facts.node === undefined
      ? h('p', { class: 'state bad' }, '✕ The Node does not exist. Its decisions are kept for 30 days.')
      : h(
          'div',
          null,
          h(States, { node: facts.node }),
          h(Summary, { facts, node: facts.node }),
          h(NodeActions, { name, node: facts.node, readOnly: view.readOnly }),
          h('h3', null, 'Conditions'),
          h(Conditions, { node: facts.node }),
          h('h3', null, 'Taints'),
          h(Taints, { node: facts.node }),
        ),
    h(Why, { key: name, name, changes: facts.decisions[0]?.name ?? '' }),
    h('h3', null, 'Decisions of the last 24 hours'),
    facts.decisions.length === 0
      ? null
      : h(Timeline, { decisions: facts.decisions, spanMs: DECISIONS_MS, nowMs: clusterClock.nowMs() }),
    h(Table, {
      caption: `Decisions about ${name}`,
      columns: DECISION_COLUMNS,
      rows: decisionRows(facts.decisions),
      empty: 'No decision was recorded.',
    }),
    h('h3', null, 'Pods'),
    h(Table, {
      caption: `Pods of ${name}`,
      columns: ['Pod', 'Phase', 'Age'],
      rows: facts.pods.map((pod) => [
        podKeyOf(pod),
        pod.isTerminating ? 'Terminating' : pod.phase,
        h(Age, { sinceMs: pod.createdAtMs }),
      ]),
      empty: 'No pod is bound to this node.',
    }),
  );

/** What explains why the controllers treat the node differently. */
function States({ node }: { readonly node: KubeNode }): JSX.Element {
  const { plannedSilence, isFlapping } = cellOf(node);
  const flapping = node.status?.conditions?.find(({ type }) => type === FLAPPING_CONDITION);
  const flappingMs = parseTimeMs(flapping?.lastTransitionTime);
  return h(
    'div',
    { role: 'status', class: 'states' },
    plannedSilence === undefined
      ? null
      : h(
          'p',
          { class: 'state' },
          'Planned silence',
          ...(plannedSilence.untilMs === undefined ? [] : [' until ', h(Time, { atMs: plannedSilence.untilMs })]),
          plannedSilence.reason === '' ? '' : `: ${plannedSilence.reason}`,
          '. The node is not marked and its pods are not evicted until then.',
        ),
    isFlapping
      ? h(
          'p',
          { class: 'state warn' },
          '⚠ Flapping',
          ...(flappingMs === undefined ? [] : [' for ', h(Age, { sinceMs: flappingMs })]),
          `: ${flapping?.message ?? 'it was marked repeatedly.'}`,
        )
      : null,
  );
}

function Summary({ facts, node }: { readonly facts: NodeFacts; readonly node: KubeNode }): JSX.Element {
  const renewedMs = parseTimeMs(facts.lease?.spec?.renewTime);
  const cloud = facts.decisions.find(({ record }) => CLOUD_ACTS.has(record.act))?.record;
  const providerId = node.spec?.providerID;
  const createdMs = parseTimeMs(node.metadata.creationTimestamp);
  const addresses = (node.status?.addresses ?? []) as readonly { readonly address?: string }[];
  return h(
    'dl',
    { class: 'facts' },
    h(Fact, { name: 'Lease renewed' }, renewedMs === undefined ? 'no Lease' : [h(Age, { sinceMs: renewedMs }), ' ago']),
    h(Fact, { name: 'Profile' }, cellOf(node).profile ?? DEFAULT_PROFILE),
    h(Fact, { name: 'Registered' }, createdMs === undefined ? '' : [h(Age, { sinceMs: createdMs }), ' ago']),
    h(Fact, { name: 'Addresses' }, addresses.map(({ address }) => address).join(', ')),
    h(
      Fact,
      { name: 'EC2' },
      providerId === undefined ? 'no instance' : cloud === undefined ? 'not asked in the last 24 hours' : cloud.reason,
      ...(cloud === undefined || providerId === undefined ? [] : [' (', h(Age, { sinceMs: cloud.atMs }), ' ago)']),
    ),
  );
}

const Conditions = ({ node }: { readonly node: KubeNode }): JSX.Element =>
  h(Table, {
    caption: 'Conditions',
    columns: ['Type', 'Status', 'Since', 'Reason', 'Message'],
    rows: (node.status?.conditions ?? []).map(({ type, status, reason, message, lastTransitionTime }) => {
      const sinceMs = parseTimeMs(lastTransitionTime);
      return [type, status, sinceMs === undefined ? '' : h(Time, { atMs: sinceMs }), reason ?? '', message ?? ''];
    }),
    empty: 'The node has reported no condition.',
  });

const Taints = ({ node }: { readonly node: KubeNode }): JSX.Element =>
  h(Table, {
    caption: 'Taints',
    columns: ['Key', 'Value', 'Effect', 'Added'],
    rows: (node.spec?.taints ?? []).map(({ key, value, effect, timeAdded }) => {
      const addedMs = parseTimeMs(timeAdded);
      return [key, value ?? '', effect, addedMs === undefined ? '' : h(Time, { atMs: addedMs })];
    }),
    empty: 'The node has no taint.',
  });

/** The text of `nodekeeper explain`, read when asked for, and again after a new decision. */
function Why({ name, changes }: { readonly name: string; readonly changes: string }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false);
  return h(
    'details',
    {
      class: 'why',
      onToggle: (event: Event) => setIsOpen((event.currentTarget as HTMLDetailsElement).open),
    },
    h('summary', null, 'Why is the node in this state?'),
    isOpen ? h(WhyText, { key: `${name} ${changes}`, name }) : null,
  );
}

const WHY_MS = 30_000;

function WhyText({ name }: { readonly name: string }): JSX.Element {
  const { value, failure } = usePoll(name, WHY_MS, () => readText(`/explain/node/${name}`));
  return failure === undefined
    ? h('pre', { tabIndex: 0, role: 'region', 'aria-label': 'Explanation' }, value ?? 'Reading…')
    : h(Failure, { message: failure });
}
