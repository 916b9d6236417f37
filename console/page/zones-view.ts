/** One card per zone. */
import { h, type JSX } from 'preact';
import { formatAge } from '../../shared/kubernetes/age.ts';
import type { NodeCell } from '../model/node-cell.ts';
import { rateText, type ZoneSummary, zonesOf } from '../model/zone-summary.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Fact, nodeLink, Table, Time, useNowMs } from './elements.ts';
import { NodeStrip } from './node-strip.ts';

/** Rows per zone. */
const LISTED_MAX = 50;

export function ZonesView({ view }: { readonly view: ClusterView }): JSX.Element {
  const zones = zonesOf(view.nodes.values(), view.metrics, Date.now());
  return h(
    'section',
    { 'aria-labelledby': 'zones-title' },
    h('h2', { id: 'zones-title' }, 'Zones'),
    h(Legend, null),
    zones.length === 0
      ? h('p', { class: 'empty' }, view.isListed ? 'There are no nodes.' : 'The nodes are being read…')
      : h('div', { class: 'cards' }, ...zones.map((zone) => h(ZoneCard, { key: zone.zone, zone }))),
  );
}

const LEGEND = [
  ['ready', '', 'Ready'],
  ['cordoned', 'C', 'Ready, cordoned'],
  ['not-ready', 'N', 'NotReady'],
  ['unknown', 'U', 'Unknown'],
  ['unknown evicting', 'U', 'pods are evicted'],
  ['flapping', 'F', 'Ready, flapping'],
  ['planned', 'P', 'planned silence'],
] as const;

const Legend = (): JSX.Element =>
  h(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    ...LEGEND.map(([style, letter, text]) =>
      h('li', null, h('span', { class: `key ${style}`, 'aria-hidden': 'true' }, letter), text),
    ),
  );

const STATE_CLASSES: Readonly<Record<string, string>> = { Normal: 'good', Initial: 'good', FullDisruption: 'bad' };
const STATE_SIGNS: Readonly<Record<string, string>> = { good: '✓', bad: '✕', warn: '⚠' };

function ZoneCard({ zone: of }: { readonly zone: ZoneSummary }): JSX.Element {
  const style = of.state === undefined ? '' : (STATE_CLASSES[of.state] ?? 'warn');
  return h(
    'article',
    { class: 'card', 'aria-label': of.zone === '' ? 'Nodes without a zone' : `Zone ${of.zone}` },
    h(
      'h3',
      null,
      of.zone === '' ? 'without a zone' : of.zone,
      ' ',
      of.state === undefined ? null : h('span', { class: `badge ${style}` }, `${STATE_SIGNS[style] ?? ''} ${of.state}`),
    ),
    h(
      'dl',
      { class: 'facts' },
      h(Fact, { name: 'Ready' }, of.ready),
      h(Fact, { name: 'NotReady' }, of.notReady),
      h(Fact, { name: 'Unknown' }, of.unknown),
      h(Fact, { name: 'Planned silence' }, of.plannedSilence.length),
      h(Fact, { name: 'Flapping' }, of.flapping.length),
      h(Fact, { name: 'In the eviction queue' }, of.queued ?? '…'),
      h(Fact, { name: 'Tainted in the last hour' }, of.taintedInHour),
      h(Fact, { name: 'Limiter' }, of.ratePerSecond === undefined ? '…' : h(Limiter, { of, rate: of.ratePerSecond })),
    ),
    h(NodeStrip, { zone: of.zone, cells: of.cells }),
    h(Announced, { cells: of.plannedSilence }),
    h(Flapping, { cells: of.flapping }),
  );
}

/** The nodes that announced their silence, with end and reason. */
const Announced = ({ cells }: { readonly cells: readonly NodeCell[] }): JSX.Element | null =>
  cells.length === 0
    ? null
    : h(
        'details',
        null,
        h('summary', null, `Planned silence: ${countText(cells.length)}`),
        h(Table, {
          caption: 'Planned silence',
          columns: ['Node', 'Until', 'Reason'],
          rows: cells
            .slice(0, LISTED_MAX)
            .map(({ name, plannedSilence }) => [
              nodeLink(name),
              plannedSilence?.untilMs === undefined ? '' : h(Time, { atMs: plannedSilence.untilMs }),
              plannedSilence?.reason ?? '',
            ]),
          empty: '',
        }),
      );

const Flapping = ({ cells }: { readonly cells: readonly NodeCell[] }): JSX.Element | null =>
  cells.length === 0
    ? null
    : h(
        'details',
        null,
        h('summary', null, `Flapping: ${countText(cells.length)}`),
        h(
          'ul',
          { class: 'names' },
          cells.slice(0, LISTED_MAX).map(({ name }) => h('li', { key: name }, nodeLink(name))),
        ),
      );

const countText = (nodes: number): string =>
  `${nodes === 1 ? '1 node' : `${nodes} nodes`}${nodes > LISTED_MAX ? `, the first ${LISTED_MAX} are listed` : ''}`;

function Limiter({ of: { nextTokenAtMs }, rate }: { readonly of: ZoneSummary; readonly rate: number }): JSX.Element {
  const nowMs = useNowMs();
  const isWaiting = rate > 0 && nextTokenAtMs !== undefined && nextTokenAtMs > nowMs;
  return h('span', null, rateText(rate), isWaiting ? `, next in ${formatAge(nextTokenAtMs - nowMs + 999)}` : '');
}
