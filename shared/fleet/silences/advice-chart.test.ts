import { expect, it } from 'vitest';
import { adviceChart } from './advice-chart.ts';
import type { GraceAdvice, GraceCandidate } from './advise-grace.ts';

const candidate = (graceSeconds: number, boundPer1000NodeDays: number, allowed = true): GraceCandidate => ({
  graceSeconds,
  allowed,
  falseMarks: 2,
  boundPer1000NodeDays,
  detectionP50Seconds: 0,
  detectionMaxSeconds: 0,
});
const advice = (profile: string, candidates: readonly GraceCandidate[]): GraceAdvice => ({
  profile,
  graceSeconds: 40,
  nodeDays: 1,
  nodes: 1,
  days: 1,
  hours: 24,
  observedHours: 24,
  uncounted: 0,
  returned: 0,
  candidates,
  recommended: undefined,
  bestBoundPer1000NodeDays: 0,
});

it('the chart has a scale of powers of ten, the limit, and per profile a curve, its points and its name', () => {
  const candidates = [candidate(20, 100), candidate(40, 0.1), candidate(10, 5, false), candidate(60, Infinity)];
  expect(adviceChart([advice('default', candidates)], 1)).toEqual([
    {
      tag: 'text',
      role: 'label',
      at: { x: 360, y: 18, 'text-anchor': 'middle' },
      text: 'False marks per 1,000 node-days by grace period (95 % bound)',
    },
    ...[
      ['0.1', 344],
      ['1', 240],
      ['10', 136],
      ['100', 32],
    ].flatMap(([text, y]) => [
      { tag: 'line', role: 'grid', at: { x1: 64, y1: y, x2: 696, y2: y } },
      { tag: 'text', role: 'label', at: { x: 56, y: Number(y) + 4, 'text-anchor': 'end' }, text },
    ]),
    ...[
      ['0', 64],
      ['20', 274.7],
      ['40', 485.3],
      ['60', 696],
    ].map(([text, x]) => ({ tag: 'text', role: 'label', at: { x, y: 362, 'text-anchor': 'middle' }, text })),
    { tag: 'text', role: 'label', at: { x: 360, y: 388, 'text-anchor': 'middle' }, text: 'grace period, seconds' },
    { tag: 'line', role: 'limit', at: { x1: 64, y1: 240, x2: 696, y2: 240 } },
    { tag: 'text', role: 'label', at: { x: 696, y: 234, 'text-anchor': 'end' }, text: 'accepted: 1' },
    { tag: 'polyline', role: 'curve', series: 0, at: { points: '274.7,32 485.3,344' } },
    { tag: 'circle', role: 'point', series: 0, at: { cx: 274.7, cy: 32, r: 3 }, text: '20 s: 2 false marks' },
    { tag: 'circle', role: 'point', series: 0, at: { cx: 485.3, cy: 344, r: 6 }, text: '40 s: 2 false marks' },
    {
      tag: 'text',
      role: 'profile',
      series: 0,
      at: { x: 696, y: 46, 'text-anchor': 'end' },
      text: 'default (large point: in force)',
    },
  ]);
});

it('a chart without a point shows one power of ten, and large numbers are short', () => {
  const textsOf = (limit: number) =>
    adviceChart([], limit).flatMap(({ at, text }) => (at['text-anchor'] === 'end' ? [text] : []));
  expect(textsOf(1)).toEqual(['1', '10', 'accepted: 1']);
  expect(textsOf(200_000)).toEqual(['100 k', '1 M', 'accepted: 200000']);
  expect(textsOf(10_000)).toEqual(['10 k', '100 k', 'accepted: 10000']);
});

it('the seventh profile has the first colour again, and its name below the others', () => {
  const profiles = Array.from({ length: 7 }, (_, index) => advice(`p${index}`, []));
  const names = adviceChart(profiles, 1).filter(({ role }) => role === 'profile');
  expect(names.map(({ series }) => series)).toEqual([0, 1, 2, 3, 4, 5, 0]);
  expect(names.map(({ at }) => at['y'])).toEqual([46, 62, 78, 94, 110, 126, 142]);
});
