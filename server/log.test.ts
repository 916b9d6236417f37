import { expect, it } from 'vitest';
import { processLog } from './log.ts';

function linesOf(format: 'plain' | 'json', level: 'debug' | 'warn' = 'debug') {
  const lines: string[] = [];
  const log = processLog({ format, level, nowMs: () => Date.UTC(2026, 0, 1), write: (line) => lines.push(line) });
  return { log, lines };
}

it('writes a line for people, or one of JSON', () => {
  for (const [format, expected] of [
    ['plain', '2026-01-01T00:00:00.000Z info  node deleted nodeName=edge-a reason="instance is terminated"'],
    [
      'json',
      '{"time":"2026-01-01T00:00:00.000Z","level":"info","message":"node deleted","nodeName":"edge-a","reason":"instance is terminated"}',
    ],
  ] as const) {
    const { log, lines } = linesOf(format);
    log.info('node deleted', { nodeName: 'edge-a', reason: 'instance is terminated' });
    expect(lines).toEqual([expected]);
  }
});

it('shows an error with its causes, and nothing below its level', () => {
  const { log, lines } = linesOf('json', 'warn');
  log.info('quiet');
  log.error('failed', { error: new Error('outer', { cause: new Error('inner', { cause: 'disk' }) }) });
  expect(lines).toHaveLength(1);
  const { error } = JSON.parse(lines[0]!) as { error: { error: string; causes: string[] } };
  expect(error.error).toMatch(/^Error: outer\n/);
  expect(error.causes).toEqual(['Error: inner', 'disk']);
});
