/** Which cluster this is, and how current the page is. */
import { h, type JSX } from 'preact';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { type PageHealth, skewText } from '../model/page-health.ts';
import { oldestPendingTitle, podKeyOf } from '../model/pods.ts';
import { clusterClock } from './clock.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Age, ClockTime, Explained, Fact, useNowMs } from './elements.ts';

interface HeaderProps {
  readonly view: ClusterView;
  readonly health: PageHealth;
}

export const Header = ({ view, health }: HeaderProps): JSX.Element =>
  h(
    'header',
    null,
    h('h1', null, 'Nodekeeper ', h('span', { class: 'cluster' }, view.cluster)),
    h('p', { class: 'endpoint' }, view.endpoint),
    h(Banner, { health }),
    h('dl', { class: 'facts' }, h(NodeCounts, { view }), h(Gate, { view }), h(Ticks, { view }), h(Pending, { view })),
  );

/** Values below it are old: the page is grey while it is shown. */
const Banner = ({ health: { banner, goodAtMs, notices } }: { readonly health: PageHealth }): JSX.Element =>
  h(
    'div',
    null,
    h(
      'div',
      { role: 'alert' },
      banner === undefined
        ? null
        : h(
            'p',
            { class: 'banner' },
            `✕ ${banner}`,
            ...(goodAtMs === undefined ? [] : [' Last good data: ', h(ClockTime, { atMs: goodAtMs }), '.']),
          ),
    ),
    h(
      'div',
      { role: 'status', class: 'problems' },
      ...notices.map((notice) => h('p', { class: 'stale', key: notice.split(':')[0] }, `⚠ ${notice}`)),
    ),
    h(Skew, null),
  );

function Skew(): JSX.Element | null {
  useNowMs();
  const text = skewText(clusterClock.skewMs());
  return text === undefined ? null : h('p', { class: 'stale' }, `⚠ ${text}`);
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

function Gate({ view: { status } }: { readonly view: ClusterView }): JSX.Element {
  const { state } = status?.gate ?? {};
  return h(
    Fact,
    { name: h(Explained, { term: 'gate', text: 'Gate' }) },
    h(
      'span',
      { class: state === 'Closed' ? 'worse' : '' },
      state === undefined ? '…' : state === 'Closed' ? '✕ closed' : 'open',
    ),
  );
}

function Ticks({ view: { status } }: { readonly view: ClusterView }): JSX.Element {
  const lastMs = parseTimeMs(status?.lastTickTime);
  const name = h(Explained, { term: 'tick', text: 'Last tick' });
  return lastMs === undefined
    ? h(Fact, { name }, status === undefined ? '…' : 'none yet')
    : h(Fact, { name }, h(Age, { sinceMs: lastMs }), ' ago');
}

function Pending({
  view: { oldestPendingPod: pod, pendingCutAt, problems },
}: {
  readonly view: ClusterView;
}): JSX.Element {
  const name = oldestPendingTitle(pendingCutAt);
  if (pod === undefined) {
    return h(Fact, { name }, problems.has('Pending pods') ? 'not known' : 'none');
  }
  return h(
    Fact,
    { name },
    h('a', { href: '#/pods?q=Pending' }, podKeyOf(pod)),
    ', ',
    h(Age, { sinceMs: pod.createdAtMs }),
  );
}
