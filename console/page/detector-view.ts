/** How well silence is detected: the advice on the grace period, and how long it took to detect the last failures. */
import { h, type JSX } from 'preact';
import {
  adviceChart,
  CHART_HEIGHT,
  CHART_TITLE,
  CHART_WIDTH,
  type ChartElement,
} from '../../shared/fleet/silences/advice-chart.ts';
import { recommendation, roundedText } from '../../shared/fleet/silences/advice-text.ts';
import type { AdviceReport, GraceAdvice, GraceCandidate } from '../../shared/fleet/silences/advise-grace.ts';
import type { KubeEvent } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { clusterClock } from './clock.ts';
import { readDecisions } from './decisions.ts';
import { Explained, Failure, nodeLink, Table, Time } from './elements.ts';
import { readObject, readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';

/**
 * The console reads the counts every ten minutes at most. The first read of many zones may take longer than a request.
 */
const ADVICE_MS = 60_000;
const MARKS_MS = 60_000;
const DAY_MS = 86_400_000;
const EVENT_PAGES_MAX = 4;
/** Each needs one query for its decisions. */
const MARKED_MAX = 20;

export const DetectorView = (): JSX.Element =>
  h(
    'section',
    { 'aria-labelledby': 'detector-title' },
    h('h2', { id: 'detector-title' }, 'Detector'),
    h(
      'p',
      null,
      'A node is marked Unknown when it sends no heartbeat for its ',
      h(Explained, { term: 'grace period' }),
      '. A short one detects failures sooner, and marks live machines by mistake. ',
      'Each hour, the silences of machines that were alive are counted: the counts say how many of them each grace ',
      'period would have marked.',
    ),
    h(Advice, null),
    h('h3', null, 'Last marks'),
    h(Marks, null),
  );

function Advice(): JSX.Element {
  const { value, failure } = usePoll('advice', ADVICE_MS, () => readObject<AdviceReport>('/advice'));
  if (value === undefined) {
    return h('div', null, h(Failure, { message: failure }), failure === undefined ? h('p', null, 'Reading…') : null);
  }
  const { profiles, limitPer1000NodeDays: limit } = value;
  return h(
    'div',
    null,
    h(Failure, { message: failure }),
    profiles.length === 0
      ? h(
          'p',
          { class: 'empty' },
          'No hour has been counted yet. An hour is counted when the next one begins: the first figures are here then.',
        )
      : h(Chart, { profiles, limit }),
    profiles.map((advice) => h(ProfileAdvice, { key: advice.profile, advice, limit })),
  );
}

/** Narrow screens scroll it. The tables below it have the same figures. */
const Chart = ({ profiles, limit }: { readonly profiles: readonly GraceAdvice[]; readonly limit: number }) =>
  h(
    'div',
    { class: 'chart', role: 'region', 'aria-label': 'Chart of the advice', tabIndex: 0 },
    h(
      'svg',
      {
        viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`,
        role: 'img',
        'aria-label': CHART_TITLE,
      },
      adviceChart(profiles, limit).map(chartElement),
    ),
  );

const chartElement = ({ tag, role, series, at, text }: ChartElement): JSX.Element =>
  h(
    tag,
    { ...at, class: series === undefined ? role : `${role} series-${series}` },
    tag === 'text' || text === undefined ? text : h('title', null, text),
  );

function ProfileAdvice({ advice, limit }: { readonly advice: GraceAdvice; readonly limit: number }): JSX.Element {
  const { profile, nodes, nodeDays, hours, observedHours, uncounted, returned, candidates } = advice;
  return h(
    'section',
    { 'aria-label': `Profile ${profile}` },
    h('h3', null, `Grace period of profile ${profile}`),
    h('p', null, h('strong', null, recommendation(advice, limit))),
    h(
      'p',
      { class: 'note' },
      `${nodes} live machines, ${roundedText(nodeDays)} node-days, `,
      `${roundedText(observedHours)} of ${roundedText(hours)} hours observed.`,
      returned > 0 ? ` ${returned} machines returned within 10 minutes after a mark.` : '',
      uncounted > 0 ? ` ${uncounted} late nodes were not counted.` : '',
    ),
    h(Table, {
      caption: `Grace periods of profile ${profile}`,
      columns: ['Grace', 'False marks', '95 % bound', 'Detection p50', 'Max', ''],
      rows: candidates.map((each) => [
        `${each.graceSeconds} s`,
        String(each.falseMarks),
        roundedText(each.boundPer1000NodeDays),
        `${each.detectionP50Seconds} s`,
        `${each.detectionMaxSeconds} s`,
        noteOf(each, advice),
      ]),
      empty: '',
    }),
  );
}

function noteOf({ graceSeconds, allowed }: GraceCandidate, advice: GraceAdvice): string {
  if (graceSeconds === advice.graceSeconds) return 'in force';
  if (!allowed) return 'too short for the interval';
  return graceSeconds === advice.recommended?.graceSeconds ? 'recommended' : '';
}

interface Mark {
  readonly node: string;
  readonly atMs: number;
  /** Seconds. */
  readonly silentSeconds: number | undefined;
  readonly graceSeconds: number | undefined;
}

function Marks(): JSX.Element {
  const { value, failure } = usePoll('marks', MARKS_MS, readMarks);
  return h(
    'div',
    null,
    h(Failure, { message: failure }),
    h(Table, {
      caption: 'Last marks',
      columns: ['Node', 'Marked', 'After', 'Grace period'],
      rows: (value ?? []).map(({ node, atMs, silentSeconds, graceSeconds }) => [
        nodeLink(node),
        h(Time, { atMs }),
        secondsText(silentSeconds),
        secondsText(graceSeconds),
      ]),
      empty: value === undefined ? 'Reading…' : 'No node was marked in the last hour.',
    }),
  );
}

const secondsText = (seconds: number | undefined): string =>
  seconds === undefined ? '' : `${Math.round(seconds * 10) / 10} s`;

/** Marks of the nodes with an event of the last hour. Decisions are stored by node. */
async function readMarks(): Promise<readonly Mark[]> {
  const eventMs = new Map<string, number>();
  await readPages<KubeEvent>(
    '/api/v1/events',
    { fieldSelector: 'involvedObject.kind=Node,reason=NodeNotReady' },
    {
      pagesMax: EVENT_PAGES_MAX,
      onPage: (items) => {
        for (const { involvedObject, lastTimestamp, metadata } of items) {
          const node = involvedObject?.name ?? '';
          const atMs = parseTimeMs(lastTimestamp ?? metadata.creationTimestamp) ?? 0;
          eventMs.set(node, Math.max(atMs, eventMs.get(node) ?? 0));
        }
      },
    },
  );
  const newest = [...eventMs].sort(([, one], [, other]) => other - one).slice(0, MARKED_MAX);
  const marks = await Promise.all(newest.map(([node]) => marksOf(node)));
  return marks
    .flat()
    .sort((one, other) => other.atMs - one.atMs)
    .slice(0, MARKED_MAX);
}

async function marksOf(node: string): Promise<readonly Mark[]> {
  const decisions = await readDecisions(`node=${node}`, clusterClock.nowMs() - DAY_MS);
  return decisions
    .filter(({ record }) => record.act === 'MarkUnknown')
    .map(({ record: { atMs, outcome } }) => {
      const { silentSeconds, graceSeconds } = outcome as Partial<Pick<Mark, 'silentSeconds' | 'graceSeconds'>>;
      return { node, atMs, silentSeconds, graceSeconds };
    });
}
