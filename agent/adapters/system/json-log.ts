/**
 * A line of JSON for each entry, with the priority in front as journald reads it (sd-daemon(3)); it takes the prefix off.
 *
 * A line that cannot be written is lost. Whoever logs goes on: a full disk must not end what it is logged about.
 */
import type { Log } from '../../../shared/ports/log.ts';

const PRIORITIES = { debug: 7, info: 6, warn: 4, error: 3 } as const;
type Level = keyof typeof PRIORITIES;

export interface JsonLogOptions {
  readonly write: (line: string) => void;
  readonly nowMs: () => number;
  /** Whether to put priorities in front: journald reads us. */
  readonly priorities: boolean;
  readonly debug?: boolean;
}

export function jsonLog({ write, nowMs, priorities, debug = false }: JsonLogOptions): Log {
  const at =
    (level: Level) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      if (level === 'debug' && !debug) return;
      const entry = { time: new Date(nowMs()).toISOString(), level, message, ...fields };
      try {
        write(`${priorities ? `<${PRIORITIES[level]}>` : ''}${JSON.stringify(entry, plain)}\n`);
      } catch {
        // There is no other place to say so.
      }
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Errors say nothing as JSON by themselves. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (!(value instanceof Error)) return value;
  return { name: value.name, message: value.message, ...(value.cause === undefined ? {} : { cause: value.cause }) };
}
