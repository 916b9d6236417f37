/**
 * One line of JSON per entry, with a priority prefix for journald, which removes it (sd-daemon(3)).
 *
 * A line that cannot be written is lost, and the caller continues: a full disk must not stop the work that is logged.
 */
import { defined } from '../../../shared/defined.ts';
import type { Log } from '../../../shared/observability/log.ts';

const PRIORITIES = { debug: 7, info: 6, warn: 4, error: 3 } as const;
type Level = keyof typeof PRIORITIES;

export interface JsonLogOptions {
  readonly write: (line: string) => void;
  readonly nowMs: () => number;
  /** Whether lines have a priority prefix, because journald reads them. */
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
        // There is no other place to report it.
      }
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** An Error has no members in JSON, so its texts are copied. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (!(value instanceof Error)) return value;
  return { name: value.name, message: value.message, ...defined({ cause: value.cause }) };
}
