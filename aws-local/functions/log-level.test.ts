import { describe, expect, it } from 'vitest';
import { passesLogLevel } from './log-level.ts';

const METRICS = JSON.stringify({ _aws: { Timestamp: 1, CloudWatchMetrics: [] }, marked_nodes_total: 1 });
const at = (level: unknown, timestamp: unknown = '2026-11-22T07:00:00.000Z') => JSON.stringify({ level, timestamp });

describe('the log level of a function', () => {
  it.each([
    ['drops metrics above INFO', METRICS, 'WARN', false],
    ['keeps metrics at INFO', METRICS, 'INFO', true],
    ['keeps a warning', at('WARN'), 'WARN', true],
    ['reads levels in lower case', at('error'), 'WARN', true],
    ['drops a line below it', at('DEBUG'), 'INFO', false],
    ['treats a line without a valid timestamp as INFO', at('ERROR', 'yesterday'), 'WARN', false],
    ['treats a line without a known level as INFO', at('severe'), 'WARN', false],
    ['treats text as INFO', 'started', 'WARN', false],
    ['keeps everything where none is set', at('TRACE'), undefined, true],
  ])('%s', (_, line, level, passes) => {
    expect(passesLogLevel(line, level)).toBe(passes);
  });
});
