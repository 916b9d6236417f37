/**
 * The table of docs/clients.md: which client, in which versions, did what. Tests note a row after it has passed. A row
 * that the document lacks is an error. `WRITE_DOCS=1` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const DOC = fileURLToPath(new URL('../../docs/clients.md', import.meta.url));
const HEAD = '| client | versions | what was done | result |\n|---|---|---|---|\n';
const ROW = /^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| passed \|$/;

interface ClientRow {
  readonly client: string;
  readonly version: string;
  /** What was done. */
  readonly what: string;
}

export interface ClientTable {
  passed(row: ClientRow): void;
  /** Rows of this run that the document lacks, after they were written if that is wanted. */
  missing(): readonly string[];
}

type Versions = Map<string, { readonly client: string; readonly what: string; readonly versions: Set<string> }>;

const keyOf = ({ client, what }: Pick<ClientRow, 'client' | 'what'>): string => `${client} | ${what}`;

function add(rows: Versions, { client, what, version }: ClientRow): void {
  const row = rows.get(keyOf({ client, what })) ?? { client, what, versions: new Set<string>() };
  row.versions.add(version);
  rows.set(keyOf(row), row);
}

export function clientTable(): ClientTable {
  const rows: Versions = new Map();
  return {
    passed: (row) => add(rows, row),
    missing() {
      if (process.env['WRITE_DOCS'] === '1') write(rows);
      const documented = read(readFileSync(DOC, 'utf8'));
      return [...rows.values()].flatMap(({ client, what, versions }) =>
        [...versions]
          .filter((version) => documented.get(keyOf({ client, what }))?.versions.has(version) !== true)
          .map((version) => `${client} ${version}: ${what}`),
      );
    },
  };
}

function read(text: string): Versions {
  const rows: Versions = new Map();
  for (const line of text.split('\n')) {
    const [, client = '', versions = '', what = ''] = ROW.exec(line) ?? [];
    for (const version of versions === '' ? [] : versions.split(', ')) add(rows, { client, what, version });
  }
  return rows;
}

/** Rows that are in the document stay: other machines have other versions. */
function write(added: Versions): void {
  const text = readFileSync(DOC, 'utf8');
  const rows = read(text);
  for (const { client, what, versions } of added.values()) {
    for (const version of versions) add(rows, { client, what, version });
  }
  const byVersion = (one: string, other: string): number => one.localeCompare(other, 'en', { numeric: true });
  const lines = [...rows.values()]
    .toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
    .map(
      ({ client, what, versions }) =>
        `| ${client} | ${[...versions].sort(byVersion).join(', ')} | ${what} | passed |\n`,
    );
  const from = text.indexOf(HEAD);
  const end = /^(?!\|)/m.exec(text.slice(from + HEAD.length));
  writeFileSync(DOC, text.slice(0, from) + HEAD + lines.join('') + text.slice(from + HEAD.length + (end?.index ?? 0)));
}
