import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createOutput, metricsFile } from './output.ts';

function anOutput() {
  const lines: string[] = [];
  const metrics: string[] = [];
  const output = createOutput((line) => lines.push(line), { write: (line) => metrics.push(line), end: () => {} });
  return { output, lines, metrics };
}

describe('what functions print', () => {
  it('comes with the name of the function', () => {
    const { output, lines } = anOutput();
    output.functionLine('api', 'plain text');
    output.functionLine('api', '');
    expect(lines).toEqual(['api | plain text']);
  });

  it('is made readable when it is a structured log line', () => {
    const { output, lines } = anOutput();
    output.functionLine(
      'node-monitor',
      JSON.stringify({ level: 'WARN', message: 'zone state changed', service: 'x', zone: 'a', counts: { dark: 2 } }),
    );
    expect(lines).toEqual(['node-monitor | WARN zone state changed zone=a counts={"dark":2}']);
  });

  it('is added to the metrics when it is one', () => {
    const { output, lines, metrics } = anOutput();
    const metric = JSON.stringify({ _aws: { Timestamp: 1 }, beats: 3 });
    output.functionLine('heartbeat', metric);
    expect(lines).toEqual([]);
    expect(metrics).toEqual([metric]);
  });

  it('shows an error with its stack and causes, and the stack once only', () => {
    const { output, lines } = anOutput();
    const stack = 'TypeError: no\n    at f (x.ts:1)\ncaused by Error: no deeper';
    for (let time = 0; time < 2; time += 1) {
      output.functionError('api', { errorType: 'TypeError', errorMessage: 'no', stack });
    }
    expect(lines).toEqual([
      'api | ERROR TypeError: no',
      'api |   at f (x.ts:1)',
      'api |   caused by Error: no deeper',
      'api | ERROR TypeError: no',
    ]);
  });
});

describe('the metrics file', () => {
  it('never grows past its bound, the older half kept aside', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-metrics-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'metrics.jsonl');
    const sink = metricsFile(file, () => {});
    for (const size of [3_000_000, 10, 20]) {
      sink.write('x'.repeat(size));
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(readFileSync(file).length).toBe(32);
    expect(readFileSync(`${file}.1`).length).toBe(3_000_001);
  });
});
