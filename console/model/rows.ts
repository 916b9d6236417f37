/** Filter and order of tables. */

/** One word of a filter: `key=value`, or a text. In lower case. */
export interface Word {
  readonly key: string | undefined;
  readonly text: string;
}

export const wordsOf = (filter: string): readonly Word[] =>
  filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word) => {
      const mark = word.indexOf('=');
      return mark <= 0 ? { key: undefined, text: word } : { key: word.slice(0, mark), text: word.slice(mark + 1) };
    });

/**
 * Whether a row matches every word. A text matches a part of any of `texts`. `valueOfKey`: the value of a key, such as
 * a label; a word with an unknown key matches no row.
 */
export const matches = (
  words: readonly Word[],
  texts: readonly string[],
  valueOfKey: (key: string) => string | undefined,
): boolean =>
  words.every(({ key, text }) =>
    key === undefined
      ? texts.some((each) => each.toLowerCase().includes(text))
      : valueOfKey(key)?.toLowerCase() === text,
  );

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  /** What it is ordered by: texts by their numbers, the smallest first. */
  readonly by: (row: T) => string | number;
}

const numeric = new Intl.Collator('en', { numeric: true });

export const compareTexts = (one: string, other: string): number => numeric.compare(one, other);

/** `sort`: the key of a column, with `-` the largest first; otherwise the rows keep their order. */
export function ordered<T>(rows: readonly T[], columns: readonly Column<T>[], sort: string): readonly T[] {
  const isReversed = sort.startsWith('-');
  const column = columns.find(({ key }) => key === (isReversed ? sort.slice(1) : sort));
  if (column === undefined) return rows;
  const compare = (one: T, other: T): number => {
    const left = column.by(one);
    const right = column.by(other);
    return typeof left === 'number' && typeof right === 'number'
      ? left - right
      : compareTexts(String(left), String(right));
  };
  return rows.toSorted((one, other) => (isReversed ? compare(other, one) : compare(one, other)));
}

/** The order after a click on a column: upwards, downwards, none. */
export const nextSort = (sort: string, key: string): string =>
  sort === key ? `-${key}` : sort === `-${key}` ? '' : key;

/** Rows of a list that are rendered, with some more on both sides. */
export function visibleRows(
  count: number,
  { scrollTop, height, rowHeight }: { readonly scrollTop: number; readonly height: number; readonly rowHeight: number },
): { readonly first: number; readonly end: number } {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - SPARE_ROWS);
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + SPARE_ROWS);
  return { first: Math.min(first, end), end };
}

const SPARE_ROWS = 6;
