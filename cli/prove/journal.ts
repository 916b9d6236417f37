/**
 * What a run creates, in a file: a line is on the disk before its resource is requested. Whatever ends the run, the
 * lines name everything that may exist. A line that a crash cut off is ignored: nothing was requested after it.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { CommandError } from '../command.ts';

export interface RunIdentity {
  readonly region: string;
  /** In the name of everything that the run creates. */
  readonly suffix: string;
  /** Epoch milliseconds. */
  readonly startedAtMs: number;
}

/** Something that has to be removed. */
export type Creation =
  | { readonly kind: 'stack'; readonly name: string /** Of the program that requests it. */; readonly pid?: number }
  /** Retained by its stack. */
  | { readonly kind: 'logGroup'; readonly name: string };

type Line =
  | ({ readonly line: 'run' } & RunIdentity)
  | ({ readonly line: 'create' } & Creation)
  | ({ readonly line: 'removed' } & Pick<Creation, 'kind' | 'name'>);

export interface Journal {
  readonly path: string;
  readonly run: RunIdentity;
  /** What may exist, in the order of creation. */
  readonly left: readonly Creation[];
  /** Returns when the line is on the disk. Known already: nothing happens. */
  creating(creation: Creation): void;
  removed(creation: Creation): void;
  /** Deletes the file. Only when nothing is left. */
  end(): void;
}

const OWNER_ONLY = 0o600;

/** @throws CommandError when the file exists or cannot be written */
export function startJournal(path: string, run: RunIdentity): Journal {
  if (existsSync(path)) {
    throw new CommandError(`${path} exists`, `remove what that run has left: nodekeeper prove --remove ${path}`);
  }
  append(path, { line: 'run', ...run });
  return journalOf(path, run, []);
}

/** @throws CommandError when it is no journal */
export function openJournal(path: string): Journal {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code;
    throw new CommandError(`${path} cannot be read: ${why}`, 'pass the journal that the run has printed', { cause });
  }
  const [first, ...rest] = text
    .split('\n')
    .slice(0, -1)
    .map((line, index) => lineOf(path, index + 1, line));
  if (first?.line !== 'run') {
    throw new CommandError(`${path}:1: not a journal of nodekeeper prove`, 'pass the journal that the run has printed');
  }
  const { line: _, ...run } = first;
  const creations: Creation[] = [];
  for (const entry of rest) {
    if (entry.line === 'create') {
      const { line: __, ...creation } = entry;
      creations.push(creation);
    } else if (entry.line === 'removed') forget(creations, entry);
  }
  return journalOf(path, run, creations);
}

function lineOf(path: string, number: number, text: string): Line {
  try {
    return JSON.parse(text) as Line;
  } catch (cause) {
    throw new CommandError(
      `${path}:${number}: not JSON`,
      'list the stacks of the account by their name, and delete them',
      {
        cause,
      },
    );
  }
}

function journalOf(path: string, run: RunIdentity, left: Creation[]): Journal {
  return {
    path,
    run,
    left,
    creating(creation) {
      const known = left.findIndex(isSame(creation));
      if (known >= 0 && JSON.stringify(left[known]) === JSON.stringify(creation)) return;
      append(path, { line: 'create', ...creation });
      if (known >= 0) left[known] = creation;
      else left.push(creation);
    },
    removed({ kind, name }) {
      append(path, { line: 'removed', kind, name });
      forget(left, { kind, name });
    },
    end: () => rmSync(path),
  };
}

const isSame =
  ({ kind, name }: Pick<Creation, 'kind' | 'name'>) =>
  (other: Creation): boolean =>
    other.kind === kind && other.name === name;

function forget(creations: Creation[], creation: Pick<Creation, 'kind' | 'name'>): void {
  const same = isSame(creation);
  for (let index = creations.length - 1; index >= 0; index -= 1) {
    if (same(creations[index]!)) creations.splice(index, 1);
  }
}

function append(path: string, line: Line): void {
  let file: number;
  try {
    file = openSync(path, 'a', OWNER_ONLY);
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code;
    throw new CommandError(`${path} cannot be written: ${why}`, 'run it in a directory of yours', { cause });
  }
  try {
    writeSync(file, `${JSON.stringify(line)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
