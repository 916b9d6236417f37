import { renameSync } from 'node:fs';
import { basename } from 'node:path';
import { delayedWrite } from '../shared/host/delayed-write.ts';
import { appendLines, sizeOf } from '../shared/host/write-file.ts';
import { isObject } from './assembly/template.ts';

/** Where the lines go that functions print: people see them with the function's name, metrics go to their own sink. */
export interface Output {
  functionLine(functionName: string, line: string): void;
  functionError(functionName: string, error: { errorType: string; errorMessage: string; stack: string }): void;
  notice(message: string): void;
}

export interface MetricsSink {
  write(line: string): void;
  /** Writes the last lines. */
  end(): void;
}

const METRICS_BYTES_MAX = 5_000_000;
const METRICS_FLUSH_MS = 1_000;
const STACK_LINES_MAX = 12;

/** Frames that are the same in every stack. */
const OWN_FRAMES = /node:internal|local\/functions\/worker\.ts/;

/** Fields a log line carries for machines; a person at a terminal knows them or has no use for them. */
const QUIET_FIELDS = new Set([
  'level',
  'message',
  'timestamp',
  'service',
  'cold_start',
  'function_arn',
  'function_memory_size',
  'function_name',
  'function_request_id',
  'requestId',
  'sampling_rate',
  'xray_trace_id',
]);

/** Lines in the form of CloudWatch, in a file that is cut in half when it grows too large. */
export function metricsFile(file: string, onTrouble: (message: string) => void): MetricsSink {
  let pending = '';
  const stored = delayedWrite({
    file: basename(file),
    delayMs: METRICS_FLUSH_MS,
    write() {
      if (pending === '') return;
      if (sizeOf(file) > METRICS_BYTES_MAX / 2) renameSync(file, `${file}.1`);
      appendLines(file, pending);
      pending = '';
    },
    onTrouble,
  });
  return {
    write(line) {
      // A disk that stays full loses metrics, not memory.
      if (pending.length > METRICS_BYTES_MAX) return;
      pending += `${line}\n`;
      stored.soon();
    },
    end: () => stored.end(),
  };
}

export const noMetrics: MetricsSink = { write: () => {}, end: () => {} };

/** Lines of local mode itself. */
export const noticeTo =
  (print: (line: string) => void) =>
  (message: string): void =>
    print(`local | ${message}`);

/** Kinds of errors remembered: an error of every tick shows its stack once. */
const KNOWN_ERRORS_MAX = 200;

export function createOutput(print: (line: string) => void, metrics: MetricsSink): Output {
  const known = new Set<string>();
  return {
    functionLine(functionName, line) {
      const parsed = jsonLine(line);
      if (parsed !== undefined && '_aws' in parsed) metrics.write(line);
      else if (line.trim() !== '') print(`${functionName} | ${parsed === undefined ? line : readable(parsed)}`);
    },
    functionError(functionName, error) {
      const stack = error.stack
        .split('\n')
        .filter((line) => line !== '' && !OWN_FRAMES.test(line))
        .slice(0, STACK_LINES_MAX);
      const headline = `${functionName} | ERROR ${error.errorType}: ${error.errorMessage}`;
      print(headline);
      if (known.has(headline)) return;
      if (known.size >= KNOWN_ERRORS_MAX) known.clear();
      known.add(headline);
      for (const line of stack) {
        if (!line.includes(error.errorMessage) || line.startsWith('caused by'))
          print(`${functionName} |   ${line.trim()}`);
      }
    },
    notice: noticeTo(print),
  };
}

function jsonLine(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const parsed: unknown = JSON.parse(line);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** `WARN zone state changed zone=eu-a from=normal`; other JSON as it came. */
function readable(line: Record<string, unknown>): string {
  if (typeof line['message'] !== 'string' || typeof line['level'] !== 'string') return JSON.stringify(line);
  const fields = Object.entries(line)
    .filter(([name]) => !QUIET_FIELDS.has(name))
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return [line['level'], line['message'], ...fields].join(' ');
}
