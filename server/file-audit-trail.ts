/** The audit log in a file: a line of JSON for each write by a person. The file is replaced when it is long, once. */
import { appendFile, rename, stat } from 'node:fs/promises';
import type { AuditTrail } from '../shared/access/audit-trail.ts';
import { PRIVATE_FILE } from '../shared/host/write-file.ts';

const FILE_BYTES_MAX = 50_000_000;

/** The audit log did not accept a line. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
  readonly code = 'audit-log-failed';
}

export function fileAuditTrail(file: string): AuditTrail {
  let bytes: number | undefined;
  /** Lines of the next append. Those that arrive while one runs share the next. */
  let waiting: string[] = [];
  let last: Promise<void> = Promise.resolve();

  async function append(text: string): Promise<void> {
    bytes ??= await stat(file).then(
      ({ size }) => size,
      () => 0,
    );
    if (bytes > FILE_BYTES_MAX) {
      await rename(file, `${file}.1`);
      bytes = 0;
    }
    await appendFile(file, text, { mode: PRIVATE_FILE });
    bytes += Buffer.byteLength(text);
  }

  return {
    async record(line) {
      waiting.push(`${JSON.stringify(line)}\n`);
      // One at a time: two appends at once could both replace the file.
      if (waiting.length === 1) {
        last = last
          .catch(() => {})
          .then(() => {
            const lines = waiting;
            waiting = [];
            return append(lines.join(''));
          });
      }
      try {
        await last;
      } catch (cause) {
        throw new AuditLogError(`${file} did not accept a line`, { cause });
      }
    },
  };
}
