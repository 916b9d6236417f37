/** docs/quality.svg: four panels over fleet size, drawn with nothing but numbers and rectangles. */
import type { Cell, QualityFigures } from './quality-figures.ts';

const COLOURS = ['#1f5fa8', '#c8641e', '#3b8c4a', '#8a4fa3'];
const WIDTH = 1_000;
const HEIGHT = 800;
const PLOT = { width: 390, height: 230 };
const TITLE = 'How fast, how wrong, how gentle: on virtual time';
const INK = '#222';
const FAINT = '#ddd';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const at = (value: number): string => String(Math.round(value * 10) / 10);

function text(x: number, y: number, words: string, options: { size?: number; anchor?: string; fill?: string } = {}) {
  const { size = 12, anchor = 'start', fill = INK } = options;
  return `<text x="${at(x)}" y="${at(y)}" font-size="${size}" text-anchor="${anchor}" fill="${fill}">${escaped(words)}</text>`;
}
const line = (x1: number, y1: number, x2: number, y2: number, stroke: string, more = ''): string =>
  `<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" stroke="${stroke}"${more}/>`;
const dot = (x: number, y: number, fill: string): string =>
  `<circle cx="${at(x)}" cy="${at(y)}" r="4" fill="${fill}"/>`;
const bar = (x: number, y: number, width: number, height: number, fill: string): string =>
  `<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}" fill="${fill}"/>`;

interface Panel {
  readonly title: string;
  readonly note: string;
  readonly ticks: readonly number[];
  /** 0 at the bottom, 1 at the top. */
  readonly scale: (value: number) => number;
  readonly label: (value: number) => string;
  readonly draw: (frame: Frame) => string[];
}

interface Frame {
  readonly top: number;
  /** Left edge of a size's column. */
  column(size: number): number;
  readonly columnWidth: number;
  y(value: number): number;
}

export function qualitySvg(figures: QualityFigures): string {
  const { policies, sizes, cells } = figures;
  const colourOf = (policy: string): string => COLOURS[policies.findIndex(({ name }) => name === policy)] ?? INK;
  const cellsOf = (size: number): readonly Cell[] => cells.filter(({ nodes }) => nodes === size);
  /** Where in its column a policy stands, 0 to 1. */
  const placeOf = (policy: string): number =>
    (policies.findIndex(({ name }) => name === policy) + 1) / (policies.length + 1);
  const own = (policy: string): boolean => policies.some(({ name, cutOnly }) => name === policy && !cutOnly);
  const overCells = (
    frame: Frame,
    draw: (cell: Cell, x: number, colour: string) => string[],
    shown: (policy: string) => boolean = () => true,
  ): string[] =>
    sizes.flatMap((size) =>
      cellsOf(size).flatMap((cell) =>
        !shown(cell.policy)
          ? []
          : draw(cell, frame.column(size) + frame.columnWidth * placeOf(cell.policy), colourOf(cell.policy)),
      ),
    );
  const linear = (most: number) => (value: number) => Math.min(1, value / most);
  const decades = (value: number): number => Math.max(0, Math.min(1, Math.log10(Math.max(value, 0.1)) / 3));

  const detection: Panel = {
    title: 'From the last beat of a dead node to Ready=Unknown',
    note: 'seconds; dot p50, bar up to p99 and max, dashes: grace + period',
    ticks: [0, 20, 40, 60, 80, 100],
    scale: linear(100),
    label: String,
    draw: (frame) =>
      overCells(
        frame,
        ({ detection: d }, x, colour) => [
          line(x, frame.y(d.p50Seconds), x, frame.y(d.maxSeconds), colour, ' stroke-width="3"'),
          line(x - 5, frame.y(d.p99Seconds), x + 5, frame.y(d.p99Seconds), colour, ' stroke-width="2"'),
          line(x - 10, frame.y(d.limitSeconds), x + 10, frame.y(d.limitSeconds), colour, ' stroke-dasharray="3 2"'),
          dot(x, frame.y(d.p50Seconds), colour),
          text(x, frame.y(d.p50Seconds) + 18, d.p50Seconds.toFixed(0), { size: 10, anchor: 'middle', fill: colour }),
        ],
        own,
      ),
  };
  const marks: Panel = {
    title: 'Live nodes marked by mistake in a million node-hours',
    note: 'bar: no more than this with 95 % confidence, by how long we looked; number: seen',
    ticks: [1, 10, 100, 1_000],
    scale: decades,
    label: String,
    draw: (frame) =>
      overCells(
        frame,
        ({ falseMarks: m }, x, colour) => {
          const top = frame.y(m.bound95PerMillionNodeHours);
          return [
            bar(x - 8, top, 16, frame.top + PLOT.height - top, colour),
            text(x, top - 5, String(m.falseMarks), { size: 10, anchor: 'middle', fill: colour }),
          ];
        },
        own,
      ),
  };
  const cuts: Panel = {
    title: 'A zone is cut off and lives: share of its nodes with deleted pods',
    note: 'percent, after 10, 15 and 30 minutes from left to right; what stays at 0 shows no bar',
    ticks: [0, 25, 50, 75, 100],
    scale: linear(100),
    label: String,
    draw: (frame) =>
      sizes.flatMap((size) =>
        cellsOf(size).flatMap((cell) =>
          cell.cuts.flatMap((cut, index) => {
            const group = frame.columnWidth / cell.cuts.length;
            const width = (group - 6) / policies.length;
            const place = policies.findIndex(({ name }) => name === cell.policy);
            const x = frame.column(size) + index * group + 3 + place * width;
            const top = frame.y(100 * cut.evictedShare);
            return [bar(x, top, width - 1, frame.top + PLOT.height - top, colourOf(cell.policy))];
          }),
        ),
      ),
  };
  const recovery: Panel = {
    title: 'After a cut of 30 minutes: until a node is Ready and untainted',
    note: 'seconds; dot p50, bar up to the last node',
    ticks: [0, 5, 10, 15, 20],
    scale: linear(20),
    label: String,
    draw: (frame) =>
      overCells(frame, ({ cuts: each }, x, colour) => {
        const cut = each.at(-1);
        return cut === undefined
          ? []
          : [
              line(x, frame.y(cut.recoveryP50Seconds), x, frame.y(cut.recoveryMaxSeconds), colour, ' stroke-width="3"'),
              dot(x, frame.y(cut.recoveryP50Seconds), colour),
              text(x + 8, frame.y(cut.recoveryMaxSeconds) + 4, cut.recoveryMaxSeconds.toFixed(0), {
                size: 10,
                fill: colour,
              }),
            ];
      }),
  };

  const drawn = [detection, marks, cuts, recovery].flatMap((panel, index) => {
    const left = 70 + (index % 2) * 490;
    const top = 130 + Math.floor(index / 2) * 345;
    const columnWidth = PLOT.width / sizes.length;
    const y = (value: number): number => top + PLOT.height * (1 - panel.scale(value));
    const column = (size: number): number => left + sizes.indexOf(size) * columnWidth;
    return [
      text(left - 30, top - 32, panel.title, { size: 13 }),
      text(left - 30, top - 15, panel.note, { size: 10, fill: '#666' }),
      ...panel.ticks.flatMap((value) => [
        line(left, y(value), left + PLOT.width, y(value), FAINT),
        text(left - 6, y(value) + 4, panel.label(value), { size: 11, anchor: 'end' }),
      ]),
      ...sizes.map((size) =>
        text(column(size) + columnWidth / 2, top + PLOT.height + 17, `${size.toLocaleString('en')} nodes`, {
          size: 11,
          anchor: 'middle',
        }),
      ),
      ...panel.draw({ top, column, columnWidth, y }),
      line(left, top + PLOT.height, left + PLOT.width, top + PLOT.height, INK),
    ];
  });
  const legend = policies.flatMap((policy, index) => [
    bar(40 + index * 235, 48, 12, 12, colourOf(policy.name)),
    text(58 + index * 235, 58, `${policy.name}: grace ${policy.graceSeconds} s, beat ${policy.beatSeconds} s`),
  ]);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif">`,
    `<title>${TITLE}</title>`,
    bar(0, 0, WIDTH, HEIGHT, '#fff'),
    text(40, 30, TITLE, { size: 17 }),
    ...legend,
    ...drawn,
    text(40, HEIGHT - 12, `Made by: ${figures.command}`, { size: 10, fill: '#666' }),
    '</svg>',
    '',
  ].join('\n');
}
