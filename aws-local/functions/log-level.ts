/**
 * Lambda's filter of what a function prints: a line below the function's application log level does not reach
 * CloudWatch Logs, so metrics in it do not exist. A line without a level, or without a timestamp, is INFO, and so are
 * lines in the embedded metric format.
 *
 * Source: AWS Lambda Developer Guide, "Log-level filtering".
 */
import { isObject } from '../assembly/template.ts';

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** @param level the function's ApplicationLogLevel; undefined: nothing is filtered */
export function passesLogLevel(line: string, level: string | undefined): boolean {
  const least = LEVELS.indexOf(level as (typeof LEVELS)[number]);
  return least === -1 || LEVELS.indexOf(levelOf(line)) >= least;
}

function levelOf(line: string): (typeof LEVELS)[number] {
  const parsed = jsonOf(line);
  const { level, timestamp } = isObject(parsed) ? parsed : {};
  const known = LEVELS.find((each) => each === String(level).toUpperCase());
  return known !== undefined && typeof timestamp === 'string' && DATE_TIME.test(timestamp) ? known : 'INFO';
}

function jsonOf(line: string): unknown {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
