/** Small parts that several views use. */
import { type ComponentChildren, Fragment, h, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { sentenceParts, TERMS, type Term } from '../model/terms.ts';
import { clusterClock } from './clock.ts';

const SECOND_MS = 1_000;

const onSecond = new Set<() => void>();
setInterval(() => {
  if (!document.hidden) for (const run of onSecond) run();
}, SECOND_MS);

/** The clock of the cluster, which ticks once per second, for all parts of the page together. */
export function useNowMs(): number {
  const [nowMs, setNowMs] = useState(() => clusterClock.nowMs());
  useEffect(() => {
    const run = (): void => setNowMs(clusterClock.nowMs());
    onSecond.add(run);
    return () => void onSecond.delete(run);
  }, []);
  return nowMs;
}

/** "3m20s ago", "in 40s". */
const distanceText = (atMs: number, nowMs: number): string =>
  atMs > nowMs ? `in ${formatAge(atMs - nowMs)}` : `${formatAge(nowMs - atMs)} ago`;

/** A local time. The title is in UTC, as `explain` and the logs print it, and says how long ago it was. */
export const Time = ({ atMs }: { readonly atMs: number }): JSX.Element => {
  const date = new Date(atMs);
  const title = `${date.toISOString()}, ${distanceText(atMs, clusterClock.nowMs())}`;
  return h('time', { dateTime: date.toISOString(), title }, date.toLocaleString());
};

/** The exact time of a moment, as a title of what states it as an age. */
export const exactTime = (atMs: number): string => {
  const date = new Date(atMs);
  return `${date.toLocaleString()} (${date.toISOString()})`;
};

/** How long ago, as kubectl prints ages. It counts on by itself. */
export function Age({ sinceMs }: { readonly sinceMs: number }): JSX.Element {
  const nowMs = useNowMs();
  const date = new Date(sinceMs);
  return h(
    'time',
    { dateTime: date.toISOString(), title: exactTime(sinceMs) },
    formatAge(Math.max(0, nowMs - sinceMs)),
  );
}

/** The time of day, with the date where it is another day. */
export function ClockTime({ atMs }: { readonly atMs: number }): JSX.Element {
  const date = new Date(atMs);
  const isToday = date.toDateString() === new Date(clusterClock.nowMs()).toDateString();
  const text = isToday ? date.toLocaleTimeString() : date.toLocaleString();
  const title = `${date.toISOString()}, ${distanceText(atMs, clusterClock.nowMs())}`;
  return h('time', { dateTime: date.toISOString(), title }, text);
}

/** A word of ours with its explanation, for the pointer and for the keyboard. */
export const Explained = ({ term, text = term }: { readonly term: Term; readonly text?: string }): JSX.Element =>
  h('abbr', { title: TERMS[term], tabIndex: 0 }, text);

/** A sentence, in which each word of ours has its explanation. */
export const Sentence = ({ text }: { readonly text: string }): JSX.Element =>
  h(
    Fragment,
    null,
    ...sentenceParts(text).map((part) =>
      part.term === undefined ? part.text : h(Explained, { term: part.term, text: part.text }),
    ),
  );

/** One figure with its name. */
export const Fact = ({
  name,
  children,
}: {
  readonly name: ComponentChildren;
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

/** In the place of what a view shows, until it has it. */
export const awaited = (what: string, failure: string | undefined): string =>
  failure === undefined ? `The ${what} are being read…` : `The ${what} are not known.`;

export const nodeLink = (name: string): JSX.Element => h('a', { href: `#/node/${encodeURIComponent(name)}` }, name);

/** Of a choice. */
export type Option = readonly [value: string, text: string];

export function Choice(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly onChoose: (value: string) => void;
}): JSX.Element {
  return h(
    'label',
    null,
    `${props.label} `,
    h(
      'select',
      {
        value: props.value,
        onChange: (event: Event) => props.onChoose((event.currentTarget as HTMLSelectElement).value),
      },
      ...props.options.map(([value, text]) => h('option', { value }, text)),
    ),
  );
}
