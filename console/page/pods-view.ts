/** Pods that wait, pods that were evicted and what replaced them, and Deployments. */
import { h, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { KubeEvent, KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { type DeploymentSummary, deploymentSummaryOf, pendingPods, podKeyOf, podSummaryOf } from '../model/pods.ts';
import { type EvictedPod, type PodSummary, type Replacement, replacementsOf } from '../model/replacements.ts';
import { messageOf } from './cluster-feed.ts';
import { readDecisions } from './decisions.ts';
import { Age, Failure, nodeLink, Table } from './elements.ts';
import { whileShown } from './page-visibility.ts';
import { readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';
import { listAndWatch, type WatchTarget } from './watch.ts';

const POLL_MS = 10_000;
const PAGES_MAX = 20;
const ROWS_MAX = 100;
/** Each needs one query for its node. */
const EVICTED_MAX = 20;
const NOTIFY_MS = 200;
/** The event that the taint eviction publishes for a pod that it deletes. Kept for an hour. */
const EVICTION_REASON = 'TaintManagerEviction';

interface Evicted extends EvictedPod {
  readonly fromNode: string;
}

interface Polled {
  readonly deployments: readonly DeploymentSummary[];
  readonly evicted: readonly Evicted[];
}

export function PodsView(): JSX.Element {
  const { pods, problem } = usePods();
  const { value, failure } = usePoll('workloads', POLL_MS, readWorkloads);
  const pending = pendingPods(pods);
  return h(
    'section',
    { 'aria-labelledby': 'pods-title' },
    h('h2', { id: 'pods-title' }, 'Pods and workloads'),
    h(Failure, { message: problem ?? failure }),
    h('p', null, `${pods.length} pods, ${pending.length} pending.`),
    h('h3', null, 'Pending'),
    h(Table, {
      caption: 'Pending pods',
      columns: ['Pod', 'Age', 'Why'],
      rows: pending
        .slice(0, ROWS_MAX)
        .map((pod) => [
          podKeyOf(pod),
          h(Age, { sinceMs: pod.createdAtMs }),
          pod.whyPending || (pod.node === '' ? 'the scheduler has not tried it' : `starting on ${pod.node}`),
        ]),
      empty: 'No pod is pending.',
    }),
    h('h3', null, 'Evicted in the last hour'),
    h(Table, {
      caption: 'Evicted pods and their replacements',
      columns: ['Evicted', 'From', 'Ago', 'Replaced by', 'To'],
      rows: replacementsOf(value?.evicted ?? [], pods).map((each) => replacementRow(each)),
      empty: 'No pod was evicted.',
    }),
    h('h3', null, 'Deployments'),
    h(Table, {
      caption: 'Deployments',
      columns: ['Deployment', 'Ready', 'Up to date'],
      rows: (value?.deployments ?? [])
        .slice(0, ROWS_MAX)
        .map(({ namespace, name, wanted, ready, updated }) => [
          `${namespace}/${name}`,
          h('span', { class: ready < wanted ? 'warn' : '' }, `${ready} of ${wanted}`),
          String(updated),
        ]),
      empty: 'There are no Deployments.',
    }),
  );
}

function replacementRow({ evicted, by }: Replacement): readonly (JSX.Element | string)[] {
  const { fromNode } = evicted as Evicted;
  return [
    podKeyOf(evicted),
    fromNode === '' ? '' : nodeLink(fromNode),
    h(Age, { sinceMs: evicted.atMs }),
    by === undefined ? 'nothing yet' : podKeyOf(by),
    by === undefined || by.node === '' ? '' : nodeLink(by.node),
  ];
}

/** Lists and watches all pods while the view is shown. */
function usePods(): { readonly pods: readonly PodSummary[]; readonly problem: string | undefined } {
  const [state, setState] = useState<{ pods: readonly PodSummary[]; problem: string | undefined }>({
    pods: [],
    problem: undefined,
  });
  useEffect(() => {
    let pods = new Map<string, PodSummary>();
    let problem: string | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const change = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setState({ pods: [...pods.values()], problem });
      }, NOTIFY_MS);
    };
    const target: WatchTarget<KubePod> = {
      path: '/api/v1/pods',
      pagesMax: PAGES_MAX,
      onListStart: () => {
        pods = new Map();
      },
      onListPage(items) {
        for (const pod of items.map(podSummaryOf)) pods.set(podKeyOf(pod), pod);
      },
      onListEnd: change,
      onChange(type, object) {
        const pod = podSummaryOf(object);
        if (type === 'DELETED') pods.delete(podKeyOf(pod));
        else pods.set(podKeyOf(pod), pod);
        change();
      },
      onState(message) {
        problem = message === undefined ? undefined : messageOf(message);
        change();
      },
    };
    const disconnect = whileShown((signal) => void listAndWatch(target, signal));
    return () => {
      disconnect();
      clearTimeout(timer);
    };
  }, []);
  return state;
}

async function readWorkloads(): Promise<Polled> {
  const deployments: DeploymentSummary[] = [];
  const events: KubeEvent[] = [];
  await Promise.all([
    readPages<KubeObject>(
      '/apis/apps/v1/deployments',
      {},
      {
        pagesMax: PAGES_MAX,
        onPage: (items) => deployments.push(...items.map(deploymentSummaryOf)),
      },
    ),
    readPages<KubeEvent>(
      '/api/v1/events',
      { fieldSelector: `reason=${EVICTION_REASON}` },
      {
        pagesMax: PAGES_MAX,
        onPage: (items) => events.push(...items),
      },
    ),
  ]);
  const evicted = events
    .filter(({ message = '' }) => !message.startsWith('Cancelling'))
    .map(
      (event): EvictedPod => ({
        namespace: event.involvedObject?.namespace ?? '',
        name: event.involvedObject?.name ?? '',
        atMs: parseTimeMs(event.firstTimestamp ?? event.metadata.creationTimestamp) ?? 0,
      }),
    )
    .sort((one, other) => other.atMs - one.atMs)
    .slice(0, EVICTED_MAX);
  return { deployments, evicted: await Promise.all(evicted.map(withNode)) };
}

/** The node of a decision never changes, so it is read once. */
const fromNodes = new Map<string, string>();

async function withNode(pod: EvictedPod): Promise<Evicted> {
  const key = `${podKeyOf(pod)} ${pod.atMs}`;
  let fromNode = fromNodes.get(key);
  if (fromNode === undefined) {
    const decisions = await readDecisions(`pod=${podKeyOf(pod)}`, 0);
    const deleted = decisions.find(({ record }) => record.act === 'PodDeleted')?.record;
    const inputs = deleted?.inputs as { readonly nodeName?: string } | undefined;
    fromNode = inputs?.nodeName ?? '';
    fromNodes.set(key, fromNode);
  }
  return { ...pod, fromNode };
}
