/** Events about one object, the newest first. */
import { h, type JSX } from 'preact';
import type { KubeEvent } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { Age, awaited, Failure, Table } from './elements.ts';
import { readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';

const POLL_MS = 10_000;
const PAGES_MAX = 4;
const ROWS_MAX = 50;

interface EventsProps {
  readonly kind: 'Node' | 'Pod';
  /** '' for a node. */
  readonly namespace: string;
  readonly name: string;
}

export function Events({ kind, namespace, name }: EventsProps): JSX.Element {
  const { value, failure } = usePoll(`events ${kind} ${namespace}/${name}`, POLL_MS, () => read(kind, namespace, name));
  return h(
    'div',
    null,
    h('h3', null, 'Events'),
    h(Failure, { message: failure }),
    h(Table, {
      caption: `Events of ${name}`,
      columns: ['Last seen', 'Reason', 'Message', 'Count'],
      rows: (value ?? [])
        .slice(0, ROWS_MAX)
        .map(({ atMs, type, reason, message, count }) => [
          h(Age, { sinceMs: atMs }),
          h('span', { class: type === 'Warning' ? 'warn' : '' }, reason),
          message,
          count === 1 ? '' : String(count),
        ]),
      empty: value === undefined ? awaited('events', failure) : 'No event in the last hour.',
    }),
  );
}

async function read(kind: string, namespace: string, name: string) {
  const found: KubeEvent[] = [];
  const about = [`involvedObject.kind=${kind}`, `involvedObject.name=${name}`];
  if (namespace !== '') about.push(`involvedObject.namespace=${namespace}`);
  await readPages<KubeEvent>(
    '/api/v1/events',
    { fieldSelector: about.join() },
    { pagesMax: PAGES_MAX, onPage: (items) => found.push(...items) },
  );
  return found
    .map(({ lastTimestamp, firstTimestamp, metadata, type, reason = '', message = '', count = 1 }) => ({
      atMs: parseTimeMs(lastTimestamp ?? firstTimestamp ?? metadata.creationTimestamp) ?? 0,
      type,
      reason,
      message,
      count,
    }))
    .sort((one, other) => other.atMs - one.atMs);
}
