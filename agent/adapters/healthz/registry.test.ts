import { describe, expect, it } from 'vitest';
import { AGENT_METRICS } from './metrics.ts';
import { MetricRegistry } from './registry.ts';

const registry = () =>
  new MetricRegistry([
    { name: 'beats_total', kind: 'counter', help: 'Beats.\nAll of them.' },
    { name: 'level', kind: 'gauge', help: 'Level.' },
    { name: 'took_ms', kind: 'histogram', help: 'Time.', buckets: [1, 2.5] },
  ]);

describe('the metric registry', () => {
  it('writes what was counted, set and observed', () => {
    const metrics = registry();
    metrics.count('beats_total', { outcome: 'ok', node: 'a"b\\c\nd' });
    metrics.count('beats_total', { node: 'a"b\\c\nd', outcome: 'ok' }, 2);
    metrics.gauge('level', 3);
    metrics.gauge('level', 4);
    metrics.observe('took_ms', 1, { of: 'x' });
    metrics.observe('took_ms', 2, { of: 'x' });
    metrics.observe('took_ms', 3, { of: 'x' });
    expect(metrics.text()).toBe(`# HELP beats_total Beats.\\nAll of them.
# TYPE beats_total counter
beats_total{node="a\\"b\\\\c\\nd",outcome="ok"} 3
# HELP level Level.
# TYPE level gauge
level 4
# HELP took_ms Time.
# TYPE took_ms histogram
took_ms_bucket{of="x",le="1"} 1
took_ms_bucket{of="x",le="2.5"} 2
took_ms_bucket{of="x",le="+Inf"} 3
took_ms_sum{of="x"} 6
took_ms_count{of="x"} 3
`);
  });

  it.each([
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
    [0, '0'],
    [-1.5, '-1.5'],
  ])('writes the number %d as %s', (value, text) => {
    const metrics = registry();
    metrics.gauge('level', value);
    expect(metrics.text()).toContain(`\nlevel ${text}\n`);
  });

  it('says nothing of what has no value', () => {
    expect(registry().text()).toBe('');
  });

  it('accepts an unknown name, and refuses a name of another kind', () => {
    const metrics = registry();
    metrics.count('other_total');
    expect(metrics.text()).toBe('# TYPE other_total counter\nother_total 1\n');
    expect(() => metrics.gauge('beats_total', 1)).toThrow('beats_total is no gauge');
  });

  it('drops labels without end, and says so', () => {
    const metrics = registry();
    for (let index = 0; index < 1_002; index += 1) {
      metrics.gauge('level', 1, { index: String(index) });
      metrics.count('beats_total', { index: String(index) });
      metrics.observe('took_ms', 1, { index: String(index) });
    }
    metrics.gauge('level', 2, { index: '7' });
    expect(metrics.text()).toContain('level{index="7"} 2\n');
    expect(metrics.text()).not.toContain('index="1000"');
    expect(metrics.text()).toContain('nodekeeper_agent_metric_values_dropped_total 6\n');
  });

  it('has every metric of the agent once, under a legal name', () => {
    const names = AGENT_METRICS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
  });
});
