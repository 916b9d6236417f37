/** The audit log in a file: a line of JSON for each write by a person. The file is replaced when it is long, once. */
import { appendFile, open, rename } from 'node:fs/promises';
import type { AuditTrail } from '../shared/access/audit.ts';
import { PRIVATE_FILE } from '../shared/host/write-file.ts';

const FILE_BYTES_MAX = 50_000_000;

/** The audit log did not accept a line. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
  readonly code = 'audit-log-failed';
}

export function fileAuditTrail(file: string): AuditTrail {
  /** Undefined: it is not known how the file ends. */
  let end: FileEnd | undefined;
  /** Lines of the next append. Those that arrive while one runs share the next. */
  let waiting: string[] = [];
  let last: Promise<void> = Promise.resolve();

  async function append(text: string): Promise<void> {
    let { bytes, isInLine } = end ?? (await endOf(file));
    end = undefined;
    if (bytes > FILE_BYTES_MAX) {
      await rename(file, `${file}.1`);
      [bytes, isInLine] = [0, false];
    }
    const written = isInLine ? `\n${text}` : text;
    await appendFile(file, written, { mode: PRIVATE_FILE });
    end = { bytes: bytes + Buffer.byteLength(written), isInLine: false };
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

interface FileEnd {
  readonly bytes: number;
  /** A full disk or a kill has left a part of a line: the next one would be lost with it. */
  readonly isInLine: boolean;
}

async function endOf(file: string): Promise<FileEnd> {
  const handle = await open(file, 'r').catch(() => undefined);
  if (handle === undefined) return { bytes: 0, isInLine: false };
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    return { bytes: size, isInLine: bytesRead > 0 && buffer.toString() !== '\n' };
  } finally {
    await handle.close();
  }
}
