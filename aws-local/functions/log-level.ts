/**
 * Lambda's filters of log lines. What a function prints below its application log level does not reach CloudWatch
 * Logs, so metrics in it do not exist. A line without a level, or without a timestamp, is INFO, and so are lines in the
 * embedded metric format. Lines of Lambda itself have a level and a filter of their own.
 *
 * Source: AWS Lambda Developer Guide, "Log-level filtering".
 */
import { isObject } from '../assembly/template.ts';

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const;
export type LogLevel = (typeof LEVELS)[number];
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** @param level the function's ApplicationLogLevel; undefined: nothing is filtered */
export function passesLogLevel(line: string, level: string | undefined): boolean {
  return level === undefined || isAtLeast(levelOf(line), level);
}

/** An unknown level filters nothing. */
export function isAtLeast(level: LogLevel, least: string): boolean {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(least as LogLevel);
}

function levelOf(line: string): LogLevel {
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
