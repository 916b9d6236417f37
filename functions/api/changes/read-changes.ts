/**
 * Reads the changes of many resources as the text of an answer. One read of all heads finds the resources that have
 * changed. They are read one after the other, in the order of the request, while the answer has room.
 */
import { defined } from '../../../shared/defined.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import type { ChangeLog, LogCursor } from '../../../shared/store/change-log.ts';
import type { ChangesOfResource, ReadChange, ResourceName } from '../../../shared/watches/change-read.ts';

export type Cursor = ResourceName & LogCursor;

/** Of an answer. */
export interface Room {
  readonly changes: number;
  /** In UTF-8. More than any object has, or its change would never be returned (OBJECT_TEXT_MAX). */
  readonly bytes: number;
}

/** What is left of it. */
export type Spendable = { -readonly [Part in keyof Room]: Room[Part] };

type Log = Pick<ChangeLog, 'areQuiet' | 'readChanges'>;

/** The outcomes in JSON, in the order of the cursors. `room` becomes smaller. */
export async function readChanges(
  log: Log,
  cursors: readonly Cursor[],
  room: Spendable,
  consistent: boolean,
): Promise<string[]> {
  const quiet = await log.areQuiet(cursors, { consistent });
  const outcomes: string[] = [];
  for (const [index, cursor] of cursors.entries()) {
    const isRead = quiet[index] !== true && room.changes > 0 && room.bytes > 0;
    outcomes.push(isRead ? await readOne(log, cursor, room) : outcomeText(cursor, cursor.after, quiet[index] !== true));
  }
  return outcomes;
}

interface Shown {
  /** The others are left out. Absent: there are none. */
  readonly sees?: (object: KubeObject) => boolean;
  /** The part of an object that the reader may know. Absent: all of it, and its labels before the change. */
  readonly partOf?: (object: KubeObject) => KubeObject;
}

/** What fits into `room`, which becomes smaller. The first change of an answer must fit. */
export async function readOne(
  log: Pick<ChangeLog, 'readChanges'>,
  cursor: Cursor,
  room: Spendable,
  { sees = () => true, partOf }: Shown = {},
): Promise<string> {
  const texts: string[] = [];
  const outcome = await log.readChanges({
    ...cursor,
    limit: room.changes,
    bytesMax: room.bytes,
    eager: true,
    accepts(change) {
      if (!sees(change.object)) return true;
      const { type, object } = change;
      const text = textOfChange(partOf === undefined ? change : { type, object: partOf(object) });
      const bytes = Buffer.byteLength(text);
      if (bytes > room.bytes) {
        // The answer ends here: a resource with large objects would otherwise never have its turn.
        room.bytes = 0;
        return false;
      }
      room.bytes -= bytes;
      room.changes -= 1;
      texts.push(text);
      return true;
    },
  });
  if (outcome.kind === 'expired') {
    const { group, resource } = cursor;
    return JSON.stringify({ group, resource, outcome: 'expired' } satisfies ChangesOfResource);
  }
  return outcomeText(cursor, outcome.through, outcome.more, texts);
}

const textOfChange = ({ type, object, previous }: ReadChange): string =>
  JSON.stringify({ type, object, ...defined({ previous }) } satisfies ReadChange);

function outcomeText(
  { group, resource }: ResourceName,
  through: number,
  more: boolean,
  texts: readonly string[] = [],
): string {
  const head: ChangesOfResource = { group, resource, outcome: 'changes', through: String(through), more, changes: [] };
  return `${JSON.stringify(head).slice(0, -2)}${texts.join(',')}]}`;
}
