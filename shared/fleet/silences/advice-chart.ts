/**
 * The chart of the advice: false marks by grace period, with their bounds, one line per profile. The elements have
 * positions and roles. The CLI writes them as a file, the console renders them with its own colours.
 */
import type { GraceAdvice, GraceCandidate } from './advise-grace.ts';

export const CHART_TITLE = 'False marks per 1,000 node-days by grace period (95 % bound)';
/** SVG user units. */
export const CHART_WIDTH = 720;
export const CHART_HEIGHT = 400;
/** Profiles that have a colour of their own; the next one has the first colour again. */
export const CHART_SERIES = 6;

const LEFT = 64;
const RIGHT = 24;
const TOP = 32;
const BOTTOM = 56;
const LEGEND_LINE = 16;
/** Between two marks of the horizontal axis. Seconds. */
const TICK_SECONDS = 20;
/** Least length of the horizontal axis. Seconds. */
const AXIS_SECONDS_MIN = 60;
/** Radius of a point, and of the one for the grace period in force. */
const POINT = 3;
const POINT_IN_FORCE = 6;

export interface ChartElement {
  readonly tag: 'line' | 'text' | 'circle' | 'polyline';
  /** `grid`, `label` and `limit` belong to no profile. */
  readonly role: 'grid' | 'label' | 'limit' | 'curve' | 'point' | 'profile';
  /** Index of the colour of a profile, below `CHART_SERIES`. */
  readonly series?: number;
  /** SVG attributes of the position. */
  readonly at: Readonly<Record<string, string | number>>;
  /** Content of a text; title of a point. */
  readonly text?: string;
}

interface Scale {
  readonly x: (seconds: number) => number;
  /** Logarithmic. */
  readonly y: (perThousandNodeDays: number) => number;
  /** Marks of the vertical axis. */
  readonly decades: readonly number[];
  /** Marks of the horizontal axis. Seconds. */
  readonly ticks: readonly number[];
}

/** `limit`: accepted false marks per 1,000 node-days, drawn as a line. */
export function adviceChart(advice: readonly GraceAdvice[], limit: number): readonly ChartElement[] {
  const scale = scaleOf(advice, limit);
  const { x, y, decades, ticks } = scale;
  const end = CHART_WIDTH - RIGHT;
  return [
    label(CHART_WIDTH / 2, 18, CHART_TITLE, 'middle'),
    ...decades.flatMap((value): ChartElement[] => [
      { tag: 'line', role: 'grid', at: { x1: LEFT, y1: y(value), x2: end, y2: y(value) } },
      label(LEFT - 8, y(value) + 4, decadeText(value), 'end'),
    ]),
    ...ticks.map((seconds) => label(x(seconds), CHART_HEIGHT - BOTTOM + 18, String(seconds), 'middle')),
    label(CHART_WIDTH / 2, CHART_HEIGHT - 12, 'grace period, seconds', 'middle'),
    { tag: 'line', role: 'limit', at: { x1: LEFT, y1: y(limit), x2: end, y2: y(limit) } },
    label(end, y(limit) - 6, `accepted: ${limit}`, 'end'),
    ...advice.flatMap((each, index) => profileElements(each, index, scale)),
  ];
}

/** A candidate that the policy permits, with a bound: without data there is none. */
const isDrawn = ({ allowed, boundPer1000NodeDays }: GraceCandidate): boolean =>
  allowed && Number.isFinite(boundPer1000NodeDays);

function scaleOf(advice: readonly GraceAdvice[], limit: number): Scale {
  const candidates = advice.flatMap((each) => each.candidates.filter(isDrawn));
  const bounds = [limit, ...candidates.map(({ boundPer1000NodeDays }) => boundPer1000NodeDays)];
  const low = Math.floor(Math.log10(Math.min(...bounds)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...bounds))));
  const last = Math.max(AXIS_SECONDS_MIN, ...candidates.map(({ graceSeconds }) => graceSeconds));
  return {
    x: (seconds) => rounded(LEFT + ((CHART_WIDTH - LEFT - RIGHT) * seconds) / last),
    y: (value) =>
      rounded(CHART_HEIGHT - BOTTOM - ((CHART_HEIGHT - TOP - BOTTOM) * (Math.log10(value) - low)) / (high - low)),
    decades: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
    ticks: Array.from({ length: Math.floor(last / TICK_SECONDS) + 1 }, (_, index) => index * TICK_SECONDS),
  };
}

function profileElements(
  { profile, candidates, graceSeconds }: GraceAdvice,
  index: number,
  { x, y }: Scale,
): ChartElement[] {
  const series = index % CHART_SERIES;
  const points = candidates.filter(isDrawn).map((each) => ({
    cx: x(each.graceSeconds),
    cy: y(each.boundPer1000NodeDays),
    r: each.graceSeconds === graceSeconds ? POINT_IN_FORCE : POINT,
    text: `${each.graceSeconds} s: ${each.falseMarks} false marks`,
  }));
  const legendAt = { x: CHART_WIDTH - RIGHT, y: TOP + 14 + index * LEGEND_LINE, 'text-anchor': 'end' };
  return [
    { tag: 'polyline', role: 'curve', series, at: { points: points.map(({ cx, cy }) => `${cx},${cy}`).join(' ') } },
    ...points.map(({ text, ...at }): ChartElement => ({ tag: 'circle', role: 'point', series, at, text })),
    { tag: 'text', role: 'profile', series, at: legendAt, text: `${profile} (large point: in force)` },
  ];
}

/** "0.1", "100", "10 k", "1 M". */
function decadeText(value: number): string {
  if (value >= 1e6) return `${Math.round(value / 1e6)} M`;
  return value >= 1e4 ? `${Math.round(value / 1e3)} k` : String(Number(value.toPrecision(1)));
}

const label = (x: number, y: number, text: string, anchor: 'start' | 'middle' | 'end'): ChartElement => ({
  tag: 'text',
  role: 'label',
  at: { x: rounded(x), y: rounded(y), 'text-anchor': anchor },
  text,
});

const rounded = (position: number): number => Math.round(position * 10) / 10;
