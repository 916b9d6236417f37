/** The log of the process: a line per entry, as JSON or for people. Errors are shown with their causes. */
import type { Log } from '../shared/observability/log.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly (keyof Log)[];
export type LogLevel = (typeof LEVELS)[number];
export const LOG_LEVELS: readonly string[] = LEVELS;
export const isLogLevel = (text: string): text is LogLevel => LOG_LEVELS.includes(text);

export interface ProcessLogOptions {
  readonly format: 'plain' | 'json';
  readonly level: LogLevel;
  readonly nowMs: () => number;
  readonly write: (line: string) => void;
}

export function processLog({ format, level, nowMs, write }: ProcessLogOptions): Log {
  const from = LEVELS.indexOf(level);
  const at =
    (entryLevel: LogLevel): Log[keyof Log] =>
    (message, fields = {}) => {
      if (LEVELS.indexOf(entryLevel) < from) return;
      const time = new Date(nowMs()).toISOString();
      const shown = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainValue(value)]));
      write(
        format === 'json'
          ? JSON.stringify({ time, level: entryLevel, message, ...shown })
          : [time, entryLevel.padEnd(5), message, ...Object.entries(shown).map(fieldText)].join(' '),
      );
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

const fieldText = ([name, value]: [string, unknown]): string =>
  `${name}=${typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}`;

/** Only the stack of an error shows where it arose; its causes say why. */
function plainValue(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const causes: string[] = [];
  for (let cause = value.cause; cause !== undefined && causes.length < 5; ) {
    causes.push(String(cause));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return { error: value.stack ?? String(value), ...(causes.length > 0 && { causes }) };
}
