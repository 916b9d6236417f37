/** Where log lines are written: to stderr, or to a file where no one reads stderr, as for a service of Windows. */
import { appendFileSync, renameSync, statSync } from 'node:fs';

const FILE_BYTES_MAX = 10 * 1024 * 1024;

/** @param file absent: stderr. One earlier file of 10 MiB is kept beside it, with the ending `.1` */
export function logOutput(file: string | undefined): (line: string) => void {
  if (file === undefined) {
    // If the log cannot be written, an unhandled error event would terminate the process.
    process.stderr.on('error', () => undefined);
    return (line) => void process.stderr.write(line);
  }
  let bytes = sizeOf(file);
  return (line) => {
    if (bytes > FILE_BYTES_MAX) {
      try {
        renameSync(file, `${file}.1`);
      } catch {
        // Another program has the file open. It is renamed after another 10 MiB.
      }
      bytes = 0;
    }
    try {
      appendFileSync(file, line);
      bytes += Buffer.byteLength(line);
    } catch {
      // A full disk does not stop the agent.
    }
  };
}

function sizeOf(file: string): number {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}
