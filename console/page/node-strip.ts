/**
 * All nodes of a zone as a strip of cells on one canvas: 5,000 elements would exceed the memory and the time of the
 * page.
 *
 * To the keyboard and to screen readers it is a list box with one rendered option, that of the cursor.
 */
import { h, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type CellLook, cellText, letterOf, lookOf, type NodeCell } from '../model/node-cell.ts';

interface StripProps {
  readonly zone: string;
  readonly cells: readonly NodeCell[];
}

const GAP = 2;
/** Side of a cell in CSS pixels: large while the zone is small. */
const sideFor = (cells: number): number => (cells <= 120 ? 22 : cells <= 600 ? 16 : 12);

export function NodeStrip({ zone, cells }: StripProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawing | undefined>(undefined);
  const [width, setWidth] = useState(0);
  const [cursor, setCursor] = useState(0);
  const [pointed, setPointed] = useState<number | undefined>(undefined);
  const [isDark, setIsDark] = useState(darkScheme.matches);
  const pitch = sideFor(cells.length) + GAP;
  const columns = Math.max(1, Math.floor((width + GAP) / pitch));
  const rows = Math.ceil(cells.length / columns);

  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (parent === null || parent === undefined) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(parent);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const onChange = (): void => setIsDark(darkScheme.matches);
    darkScheme.addEventListener('change', onChange);
    return () => darkScheme.removeEventListener('change', onChange);
  }, []);
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    drawn.current = draw(canvas.current, { cells, columns, rows, pitch, isDark }, drawn.current);
  }, [cells, width, isDark]);

  const chosen = Math.min(cursor, cells.length - 1);
  const current = cells[chosen];
  const indexAt = (event: MouseEvent): number | undefined => {
    const column = Math.floor(event.offsetX / pitch);
    const index = Math.floor(event.offsetY / pitch) * columns + column;
    return column < columns && index < cells.length ? index : undefined;
  };
  const open = (cell: NodeCell | undefined): void => {
    if (cell !== undefined) location.hash = `#/node/${encodeURIComponent(cell.name)}`;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, number>> = {
      ArrowRight: chosen + 1,
      ArrowLeft: chosen - 1,
      ArrowDown: chosen + columns,
      ArrowUp: chosen - columns,
      Home: 0,
      End: cells.length - 1,
    };
    const next = moves[event.key];
    if (next !== undefined) setCursor(Math.max(0, Math.min(cells.length - 1, next)));
    else if (event.key === 'Enter' || event.key === ' ') open(current);
    else return;
    event.preventDefault();
  };
  const shown = cells[pointed ?? chosen];
  const optionId = `option-${zone}`;
  const title = zone === '' ? 'nodes without a zone' : `nodes of zone ${zone}`;
  return h(
    'div',
    { class: 'strip' },
    h('p', { class: 'pointed', 'aria-hidden': 'true' }, shown === undefined ? '' : cellText(shown)),
    h(
      'div',
      {
        role: 'listbox',
        tabIndex: 0,
        'aria-label': title,
        'aria-activedescendant': current === undefined ? undefined : optionId,
        onKeyDown,
        class: 'strip-cells',
      },
      h('canvas', {
        ref: canvas,
        'aria-hidden': 'true',
        onClick: (event: MouseEvent) => {
          const index = indexAt(event);
          if (index === undefined) return;
          setCursor(index);
          open(cells[index]);
        },
        onMouseMove: (event: MouseEvent) => setPointed(indexAt(event)),
        onMouseLeave: () => setPointed(undefined),
      }),
      current === undefined
        ? null
        : h(
            'div',
            {
              role: 'option',
              id: optionId,
              class: 'cursor',
              'aria-selected': 'true',
              'aria-setsize': cells.length,
              'aria-posinset': chosen + 1,
              style: {
                width: `${pitch - GAP}px`,
                height: `${pitch - GAP}px`,
                transform: `translate(${(chosen % columns) * pitch}px, ${Math.floor(chosen / columns) * pitch}px)`,
              },
            },
            h('span', { class: 'hidden' }, cellText(current)),
          ),
    ),
  );
}

const darkScheme = matchMedia('(prefers-color-scheme: dark)');

interface Grid {
  readonly cells: readonly NodeCell[];
  readonly columns: number;
  readonly rows: number;
  readonly pitch: number;
  readonly isDark: boolean;
}

/** What the canvas shows. Its colours are read once: reading them computes the styles of the page. */
interface Drawing {
  readonly grid: Grid;
  readonly context: CanvasRenderingContext2D;
  readonly colours: Colours;
}

/** Colours of CSS. */
interface Colours {
  readonly fills: Readonly<Record<CellLook, string>>;
  readonly ink: string;
  readonly evicting: string;
}

const isSameGrid = (one: Grid, other: Grid): boolean =>
  one.cells.length === other.cells.length &&
  one.columns === other.columns &&
  one.pitch === other.pitch &&
  one.isDark === other.isDark;

/** Draws the cells that have changed, or all on a canvas of another size. An unchanged cell is the same object. */
function draw(canvas: HTMLCanvasElement, grid: Grid, drawn: Drawing | undefined): Drawing | undefined {
  const isSame = drawn !== undefined && drawn.context.canvas === canvas && isSameGrid(grid, drawn.grid);
  const drawing = isSame ? { ...drawn, grid } : emptyDrawing(canvas, grid);
  if (drawing === undefined) return undefined;
  grid.cells.forEach((cell, index) => {
    if (!isSame || cell !== drawn.grid.cells[index]) drawCell(drawing, cell, index);
  });
  return drawing;
}

function emptyDrawing(canvas: HTMLCanvasElement, grid: Grid): Drawing | undefined {
  const { columns, rows, pitch } = grid;
  const scale = Math.min(2, devicePixelRatio);
  const side = pitch - GAP;
  const width = columns * pitch - GAP;
  const height = Math.max(side, rows * pitch - GAP);
  // Setting the size clears the canvas.
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  if (context === null) return undefined;
  context.scale(scale, scale);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.font = `700 ${Math.round(side * 0.72)}px system-ui, sans-serif`;
  const style = getComputedStyle(canvas);
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const fills = {
    planned: colour('planned'),
    unknown: colour('unknown'),
    'not-ready': colour('not-ready'),
    flapping: colour('flapping'),
    cordoned: colour('cordoned'),
    ready: colour('ready'),
  };
  return { grid, context, colours: { fills, ink: colour('cell-ink'), evicting: colour('evicting') } };
}

/** Colour and letter say the same. A bar below the letter marks a node that loses its pods. */
function drawCell({ grid, context, colours }: Drawing, cell: NodeCell, index: number): void {
  const { columns, pitch } = grid;
  const side = pitch - GAP;
  const x = (index % columns) * pitch;
  const y = Math.floor(index / columns) * pitch;
  context.fillStyle = colours.fills[lookOf(cell)];
  context.fillRect(x, y, side, side);
  const letter = letterOf(cell);
  if (letter === '') return;
  context.fillStyle = colours.ink;
  context.fillText(letter, x + side / 2, y + side / 2 + 0.5);
  if (!cell.isEvicting) return;
  context.fillStyle = colours.evicting;
  context.fillRect(x, y + side - 3, side, 3);
}
