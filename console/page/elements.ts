/** Small parts that several views use. */
import { type ComponentChildren, h, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAge } from '../../shared/kubernetes/age.ts';

const SECOND_MS = 1_000;

/** The clock of the page, which ticks once per second. */
export function useNowMs(): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}

/** A local time. The title is in UTC, as `explain` and the logs print it. */
export const Time = ({ atMs }: { readonly atMs: number }): JSX.Element => {
  const date = new Date(atMs);
  return h('time', { dateTime: date.toISOString(), title: date.toISOString() }, date.toLocaleString());
};

/** How long ago, as kubectl prints ages. It counts on by itself. */
export function Age({ sinceMs }: { readonly sinceMs: number }): JSX.Element {
  const nowMs = useNowMs();
  const date = new Date(sinceMs);
  return h(
    'time',
    { dateTime: date.toISOString(), title: `${date.toLocaleString()} (${date.toISOString()})` },
    formatAge(Math.max(0, nowMs - sinceMs)),
  );
}

/** One figure with its name. */
export const Fact = ({
  name,
  children,
}: {
  readonly name: string;
  readonly children?: ComponentChildren;
}): JSX.Element => h('div', { class: 'fact' }, h('dt', null, name), h('dd', null, children));

interface TableProps {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly ComponentChildren[])[];
  /** Shown without rows. */
  readonly empty: string;
}

/**
 * A table, and on a narrow screen a list of its rows, where each cell has the name of its column. Browsers drop the
 * roles of a table that is displayed otherwise, so they are written out.
 */
export const Table = ({ caption, columns, rows, empty }: TableProps): JSX.Element =>
  rows.length === 0
    ? h('p', { class: 'empty' }, empty)
    : h(
        'table',
        { role: 'table' },
        h('caption', { class: 'hidden' }, caption),
        h(
          'thead',
          { role: 'rowgroup' },
          h(
            'tr',
            { role: 'row' },
            columns.map((column) => h('th', { scope: 'col', role: 'columnheader' }, column)),
          ),
        ),
        h(
          'tbody',
          { role: 'rowgroup' },
          rows.map((cells) =>
            h(
              'tr',
              { role: 'row' },
              cells.map((cell, index) => h('td', { role: 'cell', 'data-column': columns[index] }, cell)),
            ),
          ),
        ),
      );

export const Failure = ({ message }: { readonly message: string | undefined }): JSX.Element | null =>
  message === undefined ? null : h('p', { class: 'failure', role: 'alert' }, message);

export const nodeLink = (name: string): JSX.Element => h('a', { href: `#/node/${encodeURIComponent(name)}` }, name);
