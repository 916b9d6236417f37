/** One card per zone. */
import { type ComponentChildren, h, type JSX } from 'preact';
import { formatAge } from '../../shared/kubernetes/age.ts';
import type { NodeCell } from '../model/node-cell.ts';
import { isTerm } from '../model/terms.ts';
import { rateText, type ZoneSummary } from '../model/zone-summary.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Explained, exactTime, Fact, nodeLink, Sentence, Table, Time, useNowMs } from './elements.ts';
import { NodeStrip } from './node-strip.ts';

/** Rows per zone. */
const LISTED_MAX = 50;

interface ZonesProps {
  readonly view: ClusterView;
  /** The worst first. */
  readonly zones: readonly ZoneSummary[];
}

export const Zones = ({ view, zones }: ZonesProps): JSX.Element =>
  h(
    'section',
    { 'aria-labelledby': 'zones-title' },
    h('div', { class: 'section-head' }, h('h3', { id: 'zones-title' }, 'Zones'), h(Legend, null)),
    zones.length === 0
      ? h('p', { class: 'empty' }, view.isListed ? 'There are no nodes.' : 'The nodes are being read…')
      : h('div', { class: 'cards' }, ...zones.map((zone) => h(ZoneCard, { key: zone.zone, zone }))),
  );

const LEGEND = [
  ['ready', '', 'Ready'],
  ['cordoned', 'C', 'Ready, cordoned'],
  ['not-ready', 'N', 'NotReady'],
  ['unknown', 'U', 'Unknown'],
  ['unknown evicting', 'U', 'tainted: its pods have to leave'],
  ['flapping', 'F', 'Ready, flapping'],
  ['planned', 'P', 'planned silence'],
] as const;

const Legend = (): JSX.Element =>
  h(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    ...LEGEND.map(([style, letter, text]) =>
      h('li', null, h('span', { class: `key ${style}`, 'aria-hidden': 'true' }, letter), h(Sentence, { text })),
    ),
  );

const STATE_CLASSES: Readonly<Record<string, string>> = { Normal: 'good', Initial: 'good', FullDisruption: 'bad' };
const STATE_SIGNS: Readonly<Record<string, string>> = { good: '✓', bad: '✕', warn: '⚠' };

/** Shown when they are not 0. */
const COUNTS: readonly (readonly [name: ComponentChildren, count: (zone: ZoneSummary) => number | undefined])[] = [
  ['NotReady', ({ notReady }) => notReady],
  ['Unknown', ({ unknown }) => unknown],
  [h(Explained, { term: 'planned silence', text: 'Planned silence' }), ({ plannedSilence }) => plannedSilence.length],
  [h(Explained, { term: 'flapping', text: 'Flapping' }), ({ flapping }) => flapping.length],
  [h(Explained, { term: 'eviction queue', text: 'In the eviction queue' }), ({ queued }) => queued],
  ['Tainted in the last hour', ({ taintedInHour }) => taintedInHour],
];

function ZoneCard({ zone: of }: { readonly zone: ZoneSummary }): JSX.Element {
  const style = of.state === undefined ? '' : (STATE_CLASSES[of.state] ?? 'warn');
  return h(
    'article',
    { class: 'card', 'aria-label': of.zone === '' ? 'Nodes without a zone' : `Zone ${of.zone}` },
    h(
      'h4',
      null,
      of.zone === '' ? 'without a zone' : of.zone,
      ' ',
      of.state === undefined
        ? null
        : h(
            'span',
            { class: `badge ${style}` },
            `${STATE_SIGNS[style] ?? ''} `,
            isTerm(of.state) ? h(Explained, { term: of.state }) : of.state,
          ),
    ),
    h(
      'dl',
      { class: 'facts' },
      h(Fact, { name: 'Ready' }, `${of.ready} of ${of.cells.length}`),
      ...COUNTS.map(([name, count]) => {
        const value = count(of);
        return value === 0 || value === undefined ? null : h(Fact, { name }, value);
      }),
      of.ratePerSecond === undefined || of.ready === of.cells.length
        ? null
        : h(
            Fact,
            { name: h(Explained, { term: 'limiter', text: 'Limiter' }) },
            h(Limiter, { of, rate: of.ratePerSecond }),
          ),
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
  const title = isWaiting ? exactTime(nextTokenAtMs) : undefined;
  return h('span', { title }, rateText(rate), isWaiting ? `, next in ${formatAge(nextTokenAtMs - nowMs + 999)}` : '');
}
