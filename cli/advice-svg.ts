/** The picture of `nodekeeper advise`: false marks by grace period, with their bounds, one line per profile. */
import type { GraceAdvice, GraceCandidate } from '../shared/domain/silences/advise-grace.ts';

const WIDTH = 720;
const HEIGHT = 400;
const LEFT = 64;
const RIGHT = 24;
const TOP = 32;
const BOTTOM = 56;
const COLORS = ['#1f6feb', '#b35900', '#1a7f37', '#8250df', '#cf222e', '#57606a'] as const;

/** `limit`: accepted false marks per 1,000 node-days, drawn as a line. */
export function adviceSvg(advice: readonly GraceAdvice[], limit: number): string {
  const candidates = advice.flatMap((each) => each.candidates.filter(({ allowed }) => allowed));
  const bounds = [limit, ...candidates.map(({ boundPer1000NodeDays }) => boundPer1000NodeDays)].filter(Number.isFinite);
  const low = Math.floor(Math.log10(Math.min(...bounds)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...bounds))));
  const last = Math.max(60, ...candidates.map(({ graceSeconds }) => graceSeconds));
  const x = (seconds: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * seconds) / last;
  const y = (value: number): number =>
    HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (Math.log10(value) - low)) / (high - low);
  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  const ticks = Array.from({ length: Math.floor(last / 20) + 1 }, (_, index) => index * 20);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(WIDTH / 2, 18, 'False marks per 1,000 node-days by grace period (95 % bound)', 'middle'),
    ...decades.flatMap((value) => [
      line(LEFT, y(value), WIDTH - RIGHT, y(value), '#d0d7de'),
      text(LEFT - 8, y(value) + 4, String(Number(value.toPrecision(1))), 'end'),
    ]),
    ...ticks.map((seconds) => text(x(seconds), HEIGHT - BOTTOM + 18, String(seconds), 'middle')),
    text(WIDTH / 2, HEIGHT - 12, 'grace period, seconds', 'middle'),
    `<line x1="${LEFT}" y1="${y(limit)}" x2="${WIDTH - RIGHT}" y2="${y(limit)}" stroke="#cf222e" stroke-dasharray="6 4"/>`,
    text(WIDTH - RIGHT, y(limit) - 6, `accepted: ${limit}`, 'end'),
    ...advice.flatMap((each, index) => profileLines(each, COLORS[index % COLORS.length]!, index, { x, y })),
    '</svg>',
    '',
  ].join('\n');
}

function profileLines(
  { profile, candidates, graceSeconds }: GraceAdvice,
  color: string,
  index: number,
  { x, y }: { readonly x: (seconds: number) => number; readonly y: (value: number) => number },
): string[] {
  const shown = candidates.filter(
    ({ allowed, boundPer1000NodeDays }) => allowed && Number.isFinite(boundPer1000NodeDays),
  );
  const at = ({ graceSeconds: seconds, boundPer1000NodeDays }: GraceCandidate): string =>
    `${x(seconds).toFixed(1)},${y(boundPer1000NodeDays).toFixed(1)}`;
  return [
    `<polyline points="${shown.map(at).join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...shown.map((each) => {
      const [cx, cy] = at(each).split(',');
      const radius = each.graceSeconds === graceSeconds ? 6 : 3;
      return `<circle cx="${cx}" cy="${cy}" r="${radius}" fill="${color}"><title>${each.graceSeconds} s: ${each.falseMarks} false marks</title></circle>`;
    }),
    `<text x="${WIDTH - RIGHT}" y="${TOP + 14 + index * 16}" text-anchor="end" fill="${color}">${escaped(profile)} (large point: in force)</text>`,
  ];
}

const line = (x1: number, y1: number, x2: number, y2: number, stroke: string): string =>
  `<line x1="${x1}" y1="${y1.toFixed(1)}" x2="${x2}" y2="${y2.toFixed(1)}" stroke="${stroke}"/>`;

const text = (x: number, y: number, content: string, anchor: 'start' | 'middle' | 'end'): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="#24292f">${escaped(content)}</text>`;

const escaped = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
