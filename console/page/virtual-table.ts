/**
 * A table of thousands of rows that renders those in sight. To the keyboard it is one grid: j and k or the arrow keys
 * move, Enter opens, x selects.
 */
import { type ComponentChildren, h, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Column, nextSort, visibleRows } from '../model/rows.ts';

interface GridProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly cells: (row: T) => readonly ComponentChildren[];
  readonly open: (row: T) => void;
  readonly sort: string;
  readonly setSort: (sort: string) => void;
  /** Shown without rows. */
  readonly empty: string;
  /** Keys of the selected rows; undefined: rows cannot be selected. */
  readonly selected?: ReadonlySet<string>;
  readonly toggle?: (row: T) => void;
}

const ROW_HEIGHT = 32;
const PAGE_ROWS = 15;

export function VirtualTable<T>(props: GridProps<T>): JSX.Element {
  const { label, columns, rows, keyOf, cells, open, sort, setSort, empty, selected, toggle } = props;
  const body = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ scrollTop: 0, height: 800 });
  const [cursorKey, setCursorKey] = useState<string | undefined>(undefined);
  const found = rows.findIndex((row) => keyOf(row) === cursorKey);
  const cursor = found < 0 ? 0 : found;
  const { first, end } = visibleRows(rows.length, { ...sight, rowHeight: ROW_HEIGHT });
  useEffect(() => {
    const element = body.current;
    if (element === null) return;
    const look = (): void => setSight({ scrollTop: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  const moveTo = (index: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    const row = rows[next];
    if (row === undefined || body.current === null) return;
    setCursorKey(keyOf(row));
    const { scrollTop, clientHeight } = body.current;
    if (next * ROW_HEIGHT < scrollTop) body.current.scrollTop = next * ROW_HEIGHT;
    else if ((next + 2) * ROW_HEIGHT > scrollTop + clientHeight) {
      // The head covers one row.
      body.current.scrollTop = (next + 2) * ROW_HEIGHT - clientHeight;
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // A button of the head, or a link in a row, has keys of its own.
    if (event.target !== event.currentTarget) return;
    const row = rows[cursor];
    const moves: Readonly<Record<string, number>> = {
      j: cursor + 1,
      ArrowDown: cursor + 1,
      k: cursor - 1,
      ArrowUp: cursor - 1,
      PageDown: cursor + PAGE_ROWS,
      PageUp: cursor - PAGE_ROWS,
      g: 0,
      Home: 0,
      G: rows.length - 1,
      End: rows.length - 1,
    };
    const next = moves[event.key];
    if (next !== undefined) moveTo(next);
    else if (event.key === 'Enter' && row !== undefined) open(row);
    else if ((event.key === 'x' || event.key === ' ') && row !== undefined && toggle !== undefined) toggle(row);
    else return;
    event.preventDefault();
  };
  const idOf = (index: number): string => `${label.replaceAll(' ', '-')}-${index}`;
  return h(
    'div',
    {
      role: 'grid',
      class: `list ${label.toLowerCase()}`,
      ref: body,
      tabIndex: 0,
      'data-grid': true,
      'aria-label': label,
      'aria-rowcount': rows.length + 1,
      'aria-activedescendant': rows.length === 0 ? undefined : idOf(cursor),
      'aria-multiselectable': selected === undefined ? undefined : true,
      onKeyDown,
    },
    h(
      'div',
      { role: 'rowgroup', class: 'grid-head-group' },
      h(
        'div',
        { role: 'row', class: 'grid-row grid-head', 'aria-rowindex': 1 },
        ...columns.map(({ key, title }) =>
          h(
            'div',
            {
              role: 'columnheader',
              class: `column-${key}`,
              'aria-sort': sort === key ? 'ascending' : sort === `-${key}` ? 'descending' : 'none',
            },
            h(
              'button',
              { type: 'button', class: 'plain', onClick: () => setSort(nextSort(sort, key)) },
              title,
              sort === key ? ' ▴' : sort === `-${key}` ? ' ▾' : '',
            ),
          ),
        ),
      ),
    ),
    rows.length === 0
      ? h('div', { role: 'row' }, h('div', { role: 'gridcell', class: 'empty' }, empty))
      : h(
          'div',
          { role: 'rowgroup', class: 'grid-body', style: { height: `${rows.length * ROW_HEIGHT}px` } },
          ...rows.slice(first, end).map((row, offset) => {
            const index = first + offset;
            const key = keyOf(row);
            return h(
              'div',
              {
                key,
                id: idOf(index),
                role: 'row',
                class: `grid-row${index === cursor ? ' at-cursor' : ''}`,
                'aria-rowindex': index + 2,
                'aria-selected': selected === undefined ? undefined : selected.has(key),
                style: { transform: `translateY(${index * ROW_HEIGHT}px)` },
                onClick: () => setCursorKey(key),
                onDblClick: () => open(row),
              },
              ...cells(row).map((cell, column) =>
                h('div', { role: 'gridcell', class: `column-${columns[column]?.key ?? ''}` }, cell),
              ),
            );
          }),
        ),
  );
}

interface FilterProps {
  readonly label: string;
  readonly value: string;
  readonly set: (filter: string) => void;
  readonly placeholder: string;
}

/** `/` moves here; Escape returns to the table. */
export const FilterInput = ({ label, value, set, placeholder }: FilterProps): JSX.Element =>
  h('input', {
    type: 'search',
    class: 'filter-input',
    'data-filter': true,
    'aria-label': label,
    placeholder,
    value,
    autocomplete: 'off',
    spellcheck: false,
    onInput: (event: Event) => set((event.currentTarget as HTMLInputElement).value),
  });
