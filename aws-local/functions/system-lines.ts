/**
 * Lines that Lambda itself writes about an invocation, in the JSON format. Source: AWS Lambda Developer Guide,
 * "Lambda Telemetry API Event schema reference" (platform.start, platform.report) and "Log-level filtering".
 */
import type { LogLevel } from './log-level.ts';

export interface SystemLine {
  readonly level: LogLevel;
  readonly line: string;
}

export interface Invocation {
  readonly requestId: string;
  readonly status: 'success' | 'error' | 'failure' | 'timeout';
  readonly durationMs: number;
  /** How long its environment was loaded before. Absent: it had been loaded for an earlier event. */
  readonly initMs?: number | undefined;
  readonly memoryMegabytes: number;
}

const line = (type: string, record: object, atMs: number): string =>
  JSON.stringify({ time: new Date(atMs).toISOString(), type: `platform.${type}`, record });
const hundredths = (milliseconds: number): number => Math.round(milliseconds * 100) / 100;

export const startLine = (requestId: string, atMs: number): SystemLine => ({
  level: 'INFO',
  line: line('start', { requestId, version: '$LATEST' }, atMs),
});

/**
 * The billed duration is in whole milliseconds, rounded up, and has the loading of the environment since August 2025
 * (AWS Compute Blog, "AWS Lambda standardizes billing for INIT Phase").
 */
export function reportLine({ requestId, status, durationMs, initMs, memoryMegabytes }: Invocation, atMs: number) {
  const metrics = {
    durationMs: hundredths(durationMs),
    billedDurationMs: Math.ceil(durationMs + (initMs ?? 0)),
    memorySizeMB: memoryMegabytes,
    ...(initMs === undefined ? {} : { initDurationMs: hundredths(initMs) }),
  };
  const level: LogLevel = status === 'success' ? 'INFO' : 'WARN';
  return { level, line: line('report', { requestId, metrics, status }, atMs) } satisfies SystemLine;
}
