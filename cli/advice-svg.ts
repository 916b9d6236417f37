/** The picture of `nodekeeper advise` as an SVG file. */
import {
  adviceChart,
  CHART_HEIGHT,
  CHART_TITLE,
  CHART_WIDTH,
  type ChartElement,
} from '../shared/fleet/silences/advice-chart.ts';
import type { GraceAdvice } from '../shared/fleet/silences/advise-grace.ts';

/** By series. */
const COLORS = ['#1f6feb', '#b35900', '#1a7f37', '#8250df', '#cf222e', '#57606a'] as const;

/** `limit`: accepted false marks per 1,000 node-days. */
export const adviceSvg = (advice: readonly GraceAdvice[], limit: number): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${CHART_TITLE}</title>`,
    `<rect width="${CHART_WIDTH}" height="${CHART_HEIGHT}" fill="white"/>`,
    ...adviceChart(advice, limit).map(elementText),
    '</svg>',
    '',
  ].join('\n');

function elementText(element: ChartElement): string {
  const { tag, at, text } = element;
  const attributes = Object.entries({ ...at, ...paintOf(element) })
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`)
    .join('');
  if (text === undefined) return `<${tag}${attributes}/>`;
  const content = tag === 'text' ? escaped(text) : `<title>${escaped(text)}</title>`;
  return `<${tag}${attributes}>${content}</${tag}>`;
}

function paintOf({ role, series = 0 }: ChartElement): Readonly<Record<string, string>> {
  const color = COLORS[series % COLORS.length]!;
  switch (role) {
    case 'grid':
      return { stroke: '#d0d7de' };
    case 'limit':
      return { stroke: '#cf222e', 'stroke-dasharray': '6 4' };
    case 'curve':
      return { fill: 'none', stroke: color, 'stroke-width': '2' };
    case 'label':
      return { fill: '#24292f' };
    default:
      return { fill: color };
  }
}

const escaped = (content: string): string =>
  content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
