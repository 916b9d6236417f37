/** One node: what it reports, and what was decided about it and why. */
import { h, type JSX } from 'preact';
import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import { FLAPPING_CONDITION } from '../../shared/fleet/silences/flapping.ts';
import type { KubeLease, KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { addressOf } from '../model/address.ts';
import { cellOf } from '../model/node-cell.ts';
import { type PodRow, podRowOf } from '../model/pod-rows.ts';
import { podKeyOf } from '../model/pods.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import { DECISION_COLUMNS, decisionRows, type NamedDecision, readDecisions, Timeline } from './decisions.ts';
import { Age, Explained, Fact, Failure, Table, Time } from './elements.ts';
import { Events } from './events.ts';
import { LEASES } from './heartbeats.ts';
import { NodeActions } from './node-actions.ts';
import { API, RequestError, readObject, readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';
import { Why } from './why.ts';

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
  readonly pods: readonly PodRow[];
  readonly decisions: readonly NamedDecision[];
}

async function readNode(name: string): Promise<NodeFacts> {
  const pods: PodRow[] = [];
  const [node, lease, decisions] = await Promise.all([
    ifPresent(readObject<KubeNode>(`${API}/api/v1/nodes/${name}`)),
    ifPresent(readObject<KubeLease>(`${API}${LEASES}/${name}`)),
    readDecisions(`node=${name}`, clusterClock.nowMs() - DECISIONS_MS),
    readPages<KubePod>(
      '/api/v1/pods',
      { fieldSelector: `spec.nodeName=${name}` },
      {
        pagesMax: POD_PAGES_MAX,
        onPage: (items) => pods.push(...items.map((pod) => podRowOf(pod, clusterClock.nowMs()))),
      },
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
    h('h2', { id: 'node-title' }, `Node ${name} `, value === undefined ? null : h(StatusBadge, { node: value.node })),
    h('p', null, h('a', { href: addressOf('nodes') }, '← Nodes')),
    h(Failure, { message: failure }),
    value === undefined
      ? h('p', { class: 'empty' }, failure === undefined ? 'The node is being read…' : '')
      : h(NodeParts, { name, view, facts: value }),
  );
}

function StatusBadge({ node }: { readonly node: KubeNode | undefined }): JSX.Element {
  if (node === undefined) return h('span', { class: 'badge bad' }, 'does not exist');
  const { state, status, plannedSilence } = cellOf(node);
  const style = plannedSilence !== undefined ? '' : state === 'Ready' ? 'good' : 'bad';
  return h('span', { class: `badge ${style}` }, state === 'Unknown' ? `${status} (silent)` : status);
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
        ),
    h(Why, {
      key: name,
      subject: `node/${name}`,
      title: 'Why is it in this state?',
      changes: facts.decisions[0]?.name ?? '',
    }),
    facts.node === undefined
      ? null
      : h(
          'div',
          null,
          h('h3', null, 'Conditions'),
          h(Conditions, { node: facts.node }),
          h('h3', null, 'Taints'),
          h(Taints, { node: facts.node }),
        ),
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
      columns: ['Pod', 'Status', 'Ready', 'Restarts', 'Age'],
      rows: facts.pods.map((pod) => [
        h('a', { href: addressOf('pod', pod.namespace, pod.name) }, podKeyOf(pod)),
        pod.status,
        pod.ready,
        String(pod.restarts),
        h(Age, { sinceMs: pod.createdAtMs }),
      ]),
      empty: 'No pod is bound to this node.',
    }),
    h(Events, { kind: 'Node', namespace: '', name }),
    facts.node === undefined ? null : h(Labels, { node: facts.node }),
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
          h(Explained, { term: 'planned silence', text: 'Planned silence' }),
          ...(plannedSilence.untilMs === undefined ? [] : [' until ', h(Time, { atMs: plannedSilence.untilMs })]),
          plannedSilence.reason === '' ? '' : `: ${plannedSilence.reason}`,
          '. The node is not marked and its pods are not evicted until then.',
        ),
    isFlapping
      ? h(
          'p',
          { class: 'state warn' },
          '⚠ ',
          h(Explained, { term: 'flapping', text: 'Flapping' }),
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
    h(Fact, { name: h(Explained, { term: 'profile', text: 'Profile' }) }, cellOf(node).profile ?? DEFAULT_PROFILE),
    h(Fact, { name: 'Registered' }, createdMs === undefined ? '' : [h(Age, { sinceMs: createdMs }), ' ago']),
    h(Fact, { name: 'Addresses' }, addresses.map(({ address }) => address).join(', ') || 'none'),
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
      return [type, status, sinceMs === undefined ? '' : h(Age, { sinceMs }), reason ?? '', message ?? ''];
    }),
    empty: 'The node has reported no condition.',
  });

const Labels = ({ node }: { readonly node: KubeNode }): JSX.Element =>
  h(
    'details',
    null,
    h('summary', null, 'Labels and machine'),
    h(Table, {
      caption: 'Labels and machine',
      columns: ['Name', 'Value'],
      rows: [
        ...Object.entries(node.status?.nodeInfo ?? {}).map(([name, value]) => [name, String(value)]),
        ...Object.entries(node.status?.allocatable ?? {}).map(([name, value]) => [`allocatable ${name}`, value]),
        ...Object.entries(node.metadata.labels ?? {}),
      ],
      empty: 'It has none.',
    }),
  );

const Taints = ({ node }: { readonly node: KubeNode }): JSX.Element =>
  h(Table, {
    caption: 'Taints',
    columns: ['Key', 'Value', 'Effect', 'Added'],
    rows: (node.spec?.taints ?? []).map(({ key, value, effect, timeAdded }) => {
      const addedMs = parseTimeMs(timeAdded);
      return [key, value ?? '', effect, addedMs === undefined ? '' : [h(Age, { sinceMs: addedMs }), ' ago']];
    }),
    empty: 'The node has no taint.',
  });
