/** One pod: its state, why it is so, its containers, events and log. */
import { h, type JSX } from 'preact';
import type { ContainerStatus, KubePod } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { addressOf } from '../model/address.ts';
import { isPodTrouble, podRowOf } from '../model/pod-rows.ts';
import { clusterClock } from './clock.ts';
import { Age, Fact, Failure, nodeLink, Table } from './elements.ts';
import { Events } from './events.ts';
import { Logs } from './logs.ts';
import { API, RequestError, readObject } from './requests.ts';
import { usePoll } from './use-poll.ts';
import { Why } from './why.ts';

const POLL_MS = 5_000;

interface PodProps {
  readonly namespace: string;
  readonly name: string;
}

export function PodView({ namespace, name }: PodProps): JSX.Element {
  const { value, failure } = usePoll(`pod ${namespace}/${name}`, POLL_MS, () => read(namespace, name));
  const pod = value?.pod;
  const row = pod === undefined ? undefined : podRowOf(pod, clusterClock.nowMs());
  const isTrouble = row === undefined ? value !== undefined : isPodTrouble(row);
  return h(
    'section',
    { 'aria-labelledby': 'pod-title' },
    h(
      'h2',
      { id: 'pod-title' },
      `Pod ${namespace}/${name} `,
      value === undefined
        ? null
        : h('span', { class: `badge ${isTrouble ? 'bad' : 'good'}` }, row?.status ?? 'does not exist'),
    ),
    h('p', null, h('a', { href: addressOf('pods') }, '← Pods')),
    h(Failure, { message: failure }),
    pod === undefined || row === undefined
      ? null
      : h(
          'dl',
          { class: 'facts' },
          h(Fact, { name: 'Ready' }, row.ready),
          h(Fact, { name: 'Restarts' }, String(row.restarts)),
          h(Fact, { name: 'Node' }, row.node === '' ? 'none' : nodeLink(row.node)),
          h(Fact, { name: 'Age' }, h(Age, { sinceMs: row.createdAtMs })),
          h(Fact, { name: 'Owner' }, row.owner || 'none'),
          h(Fact, { name: 'Address' }, pod.status?.podIP ?? 'none'),
          row.whyPending === '' ? null : h(Fact, { name: 'Why pending' }, row.whyPending),
        ),
    h(Why, { subject: `pod/${namespace}/${name}`, title: 'Why is it in this state?', changes: row?.status ?? '' }),
    pod === undefined ? null : h(Containers, { pod }),
    h(Events, { kind: 'Pod', namespace, name }),
    pod === undefined || row?.node === ''
      ? null
      : h(Logs, {
          key: `${namespace}/${name}`,
          namespace,
          pod: name,
          containers: (pod.spec?.containers ?? []).map((each) => each.name ?? ''),
        }),
  );
}

async function read(namespace: string, name: string): Promise<{ readonly pod: KubePod | undefined }> {
  try {
    return { pod: await readObject<KubePod>(`${API}/api/v1/namespaces/${namespace}/pods/${name}`) };
  } catch (error) {
    if (error instanceof RequestError && error.status === 404) return { pod: undefined };
    throw error;
  }
}

const Containers = ({ pod }: { readonly pod: KubePod }): JSX.Element =>
  h(
    'div',
    null,
    h('h3', null, 'Containers'),
    h(Table, {
      caption: 'Containers',
      columns: ['Container', 'State', 'Restarts', 'Image'],
      rows: (pod.spec?.containers ?? []).map(({ name = '', image = '' }) => {
        const status = pod.status?.containerStatuses?.find((each) => each.name === name);
        return [name, stateOf(status), String(status?.restartCount ?? 0), image];
      }),
      empty: 'It has no containers.',
    }),
  );

function stateOf(status: ContainerStatus | undefined): JSX.Element | string {
  const { running, waiting, terminated } = status?.state ?? {};
  if (waiting !== undefined) return `waiting: ${waiting.reason ?? ''} ${waiting.message ?? ''}`;
  if (terminated !== undefined)
    return `ended with ${terminated.exitCode ?? 0}: ${terminated.reason ?? ''} ${terminated.message ?? ''}`;
  const sinceMs = parseTimeMs(running?.startedAt);
  return sinceMs === undefined ? 'not started' : h('span', null, 'running for ', h(Age, { sinceMs }));
}
